// Items of a report that several kinds of documents share: waterfalls, overlap bars, queue maps, texts, and all of a
// weir.analysis/2.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/page/page.h"

namespace weir::page {

// Where commands spend their time, hop by hop, as in weir.analysis/2 and weir.profile/2.
// Adds one item per class in `classes`; `where` names the device. Returns the id of the first, or an empty string.
std::string add_waterfalls(Page& page, std::size_t source, const std::string& where, const Json& classes);

// How a step's time was spent, as the bars of an overlap item: the parts add up to its span.
struct OverlapBar {
  std::string label;
  double span_ns = 0;
  double compute_only_ns = 0;  // compute while no communication ran
  double hidden_ns = 0;        // communication while something else ran
  double exposed_ns = 0;       // communication while nothing else ran
  double idle_ns = 0;
  double other_ns = 0;  // the rest: mostly copies alone
};

// `times` is as in weir.overlap/2 for a pass (exposed_ns, hidden_ns) or in weir.analysis/2 for a device
// (exposed_communication_ns, communication_beside_compute_ns). No part is negative, and they add up; where the
// document's do not, a note reports it. Returns false where there is no span.
bool make_bar(const Json& times, OverlapBar& bar, std::vector<std::string>& notes);

Json to_json(const OverlapBar& bar);

// Which stream ran on which hardware queue: the picture's rows, columns and cells.
class QueueGrid {
 public:
  // Rows and columns keep the order of their first mention.
  std::size_t queue(const std::string& label) { return index_of(label, queues_, queue_numbers_); }
  std::size_t stream(const std::string& label) { return index_of(label, streams_, stream_numbers_); }
  // `commands` is empty where only the assignment is known. An existing cell is not changed.
  void set(std::size_t stream, std::size_t queue, std::optional<std::uint64_t> commands);
  bool is_empty() const noexcept { return cells_.empty(); }

  // Adds the item and returns its id; empty where the grid is empty. `basis` and `mapping` are as in
  // web/src/document.ts.
  std::string add_to(Page& page, std::size_t source, const std::string& title, const std::string& basis,
                     const std::string& mapping, std::vector<std::string> notes) const;

 private:
  using Numbers = std::map<std::string, std::size_t>;
  static std::size_t index_of(const std::string& label, std::vector<std::string>& all, Numbers& numbers);

  std::vector<std::string> queues_, streams_;
  Numbers queue_numbers_, stream_numbers_;
  std::map<std::pair<std::size_t, std::size_t>, std::optional<std::uint64_t>> cells_;
};

// `map` is "queue_map" of a device in weir.analysis/2; `grid` holds what else is known. Returns the item's id, or an
// empty string.
std::string add_queue_map(Page& page, std::size_t source, const std::string& where, const Json& map, QueueGrid grid);

// By rank and device id: the commands of each stream on each queue, where more is known than the document contains.
using CountedQueues = std::map<std::pair<std::int64_t, std::int64_t>, QueueGrid>;

// Adds waterfalls, queue maps, overlap and findings. `name` is for titles; `timeline` is the id of the item that
// findings link to, or empty.
void add_analysis(Page& page, std::size_t source, const std::string& name, const Json& document,
                  const std::string& timeline, CountedQueues counted);

// Adds the document as the terminal shows it, where it has a text form. The text functions assume well-formed
// documents; a malformed one loses its text, but keeps its picture.
void add_text(Page& page, std::size_t source, const Json& document, const std::string& title);

}  // namespace weir::page
