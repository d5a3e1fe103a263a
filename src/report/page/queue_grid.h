// Which stream ran on which hardware queue, as an item of a report: the picture's rows, columns and cells. Knows the
// map of weir.analysis/1; others fill the grid themselves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/page/page.h"

namespace weir::page {

class QueueGrid {
 public:
  // Rows and columns keep the order in which they were named first.
  std::size_t queue(const std::string& label) { return index_of(label, queues_, queue_numbers_); }
  std::size_t stream(const std::string& label) { return index_of(label, streams_, stream_numbers_); }
  // `commands` is nothing where only the fact is known. A cell that is there already stays as it is.
  void set(std::size_t stream, std::size_t queue, std::optional<std::uint64_t> commands);
  bool is_empty() const noexcept { return cells_.empty(); }

  // Adds the item and returns its id; nothing where the grid is empty. `basis` and `mapping` as in web/src/document.ts.
  std::string add_to(Page& page, std::size_t source, const std::string& title, const std::string& basis,
                     const std::string& mapping, std::vector<std::string> notes) const;

 private:
  using Numbers = std::map<std::string, std::size_t>;
  static std::size_t index_of(const std::string& label, std::vector<std::string>& all, Numbers& numbers);

  std::vector<std::string> queues_, streams_;
  Numbers queue_numbers_, stream_numbers_;
  std::map<std::pair<std::size_t, std::size_t>, std::optional<std::uint64_t>> cells_;
};

// `map` is "queue_map" of a device in weir.analysis/1; `grid` has what is known besides. Returns the item's id, or
// nothing.
std::string add_queue_map(Page& page, std::size_t source, const std::string& where, const Json& map, QueueGrid grid);

}  // namespace weir::page
