// weir.queues/2: the map of streams and hardware queues as a picture, one per method that found it; the other
// experiments as text.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/page/items.h"
#include "report/page/list.h"
#include "report/page/values.h"

namespace weir::page {
namespace {

constexpr std::size_t kMaxMapStreams = 4096;  // of a map
constexpr std::size_t kMaxIntervals = 200'000;
constexpr std::size_t kMaxTablePoints = 2'000;  // of lists that are printed as a table, which costs the square of this

std::string numbered(const char* what, double number) { return fmt::format("{} {:.0f}", what, number); }

// [0, 1, null, 0]: the queue of each stream.
QueueGrid by_stream(const Json& queue_of_stream) {
  QueueGrid grid;
  std::set<double> queues;
  const std::size_t streams = std::min(queue_of_stream.size(), kMaxMapStreams);
  for (std::size_t i = 0; i < streams; ++i)
    if (queue_of_stream[i].is_number()) queues.insert(queue_of_stream[i].get<double>());
  for (const double queue : queues) grid.queue(numbered("queue", queue));
  for (std::size_t i = 0; i < streams; ++i) {
    const std::size_t stream = grid.stream(numbered("stream", static_cast<double>(i)));
    if (queue_of_stream[i].is_number())
      grid.set(stream, grid.queue(numbered("queue", queue_of_stream[i].get<double>())), std::nullopt);
  }
  return grid;
}

// A stream may use one queue several times.
QueueGrid by_intervals(const Json& intervals) {
  std::map<std::pair<double, double>, std::uint64_t> counts;
  std::set<double> queues, streams;
  for (std::size_t i = 0; i < std::min(intervals.size(), kMaxIntervals); ++i) {
    const auto stream = values::amount(intervals[i], {"stream"}), queue = values::finite(intervals[i], {"queue"});
    if (!stream || !queue) continue;
    counts[{*stream, *queue}] += values::count(intervals[i], {"commands"});
    queues.insert(*queue);
    streams.insert(*stream);
  }
  QueueGrid grid;
  for (const double queue : queues) grid.queue(numbered("queue", queue));
  for (const double stream : streams) grid.stream(numbered("stream", stream));
  for (const auto& [place, commands] : counts)
    grid.set(grid.stream(numbered("stream", place.first)), grid.queue(numbered("queue", place.second)), commands);
  return grid;
}

void add_maps(Page& page, std::size_t source, const std::string& title, const Json& document) {
  const Json &map = values::at(document, {"map"}), &probe = values::at(map, {"probe"});
  const std::string mapping = values::word(probe, {"mapping"}, "not known");
  std::vector<std::string> notes;
  if (const std::string reason = values::word(probe, {"reason"}); !reason.empty())
    notes.push_back(values::sentence(reason));
  const Json& disagree = values::list(map, {"agreement", "disagree"});
  for (const Json& each : values::list(map, {"agreement", "agree"}))
    if (each.is_string() && notes.size() < 20) notes.push_back("Agrees: " + each.get<std::string>() + ".");
  for (const Json& each : disagree)
    if (each.is_string() && notes.size() < 40) notes.push_back("Disagrees: " + each.get<std::string>() + ".");

  std::string first;
  const auto add = [&](const QueueGrid& grid, const char* basis, const std::string& how) {
    const std::string id = grid.add_to(page, source, fmt::format("{}: {}", title, how), basis, mapping, notes);
    if (first.empty()) first = id;
  };
  add(by_stream(values::list(probe, {"queue_of_stream"})), "probe", "by what a held stream blocks");
  add(by_stream(values::list(map, {"runtime", "queue_of_stream"})), "runtime", "by the ids that the runtime gives");
  add(by_intervals(values::list(map, {"timeline", "intervals"})), "timeline", "by the queues that a traced step names");

  const auto queues = values::amount(probe, {"queues"});
  if (queues)
    page.find({Tone::neutral, 0,
               fmt::format("{}: {}{:.0f} hardware queues; {}.", title,
                           values::is_true(probe, {"is_lower_bound"}) ? "at least " : "", *queues, mapping),
               "", first});
  if (!disagree.empty())
    page.find({Tone::warning, 0,
               fmt::format("{}: the ways to find the map disagree in {} of {} comparisons.", title, disagree.size(),
                           disagree.size() + values::list(map, {"agreement", "agree"}).size()),
               "Repeat it on an idle device; what disagrees is listed with the map.", first});
}

// The longest of the lists that are printed as a table, in any experiment.
std::size_t longest_list(const Json& json, int depth = 0) {
  std::size_t longest = json.is_array() ? json.size() : 0;
  if (json.is_structured() && depth < 4)
    for (const Json& each : json) longest = std::max(longest, longest_list(each, depth + 1));
  return longest;
}

}  // namespace

void section_list::queues(Page& page, std::size_t source, const Json& document) {
  const std::string experiment = values::word(document, {"experiment"}, "experiment");
  const std::string title = fmt::format("queues {} on {}", experiment, fields::text(document, {"device", "name"}));
  if (experiment == "map") add_maps(page, source, title, document);
  if (longest_list(values::at(document, {experiment.c_str()})) <= kMaxTablePoints) {
    add_text(page, source, document, title);
  } else {
    page.find({Tone::neutral, 0, title + ": too many points to print as text.", "", ""});
  }
}

}  // namespace weir::page
