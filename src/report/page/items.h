// Items of a report that several kinds of documents have: waterfalls, bars of overlap, maps of queues, texts, and all
// of a weir.analysis/1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/page/page.h"

namespace weir::page {

// Where commands spend their time, hop by hop, as weir.analysis/1 and weir.profile/1 have it.
// One item for each class in `classes`; `where` names the device. Returns the first one's id, or nothing.
std::string add_waterfalls(Page& page, std::size_t source, const std::string& where, const Json& classes);

// What a step's time went into, as the bars of an overlap item: parts that add up to its span.
struct OverlapBar {
  std::string label;
  double span_ns = 0;
  double compute_only_ns = 0;  // compute while no communication ran
  double hidden_ns = 0;        // communication with something beside it
  double exposed_ns = 0;       // communication while nothing else ran
  double idle_ns = 0;
  double other_ns = 0;  // the rest: copies alone, above all
};

// `times` as weir.overlap/1 has them for a pass (exposed_ns, hidden_ns) or weir.analysis/1 for a device
// (alone_communication_ns, hidden_communication_ns). Nothing is negative, and parts add up; where the document's do
// not, a note says so. False where there is no span.
bool make_bar(const Json& times, OverlapBar& bar, std::vector<std::string>& notes);

Json to_json(const OverlapBar& bar);

// Which stream ran on which hardware queue: the picture's rows, columns and cells.
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

// By rank and the device's id: how many commands of each stream each queue ran, where more is known than the document
// says.
using CountedQueues = std::map<std::pair<std::int64_t, std::int64_t>, QueueGrid>;

// Waterfalls, queue maps, overlap and findings. `name` is for titles; `timeline` is the id of the item that findings
// lead to, or nothing.
void add_analysis(Page& page, std::size_t source, const std::string& name, const Json& document,
                  const std::string& timeline, CountedQueues counted);

// Adds the document as the terminal tells it, where there are words for it. The texts take well-formed documents for
// granted: one that is not costs its text, never its picture.
void add_text(Page& page, std::size_t source, const Json& document, const std::string& title);

}  // namespace weir::page
