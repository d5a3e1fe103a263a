// weir.queues/2, sweep: a matrix per kernel size, and which queue count is best.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kHeadWidth = 8, kCellWidth = 18;
constexpr std::size_t kCellsPerLine = (kReportColumns - kHeadWidth) / kCellWidth;

std::string size_of(const Json& point) {
  std::string text = fields::text(point, {"scale"});
  for (const auto& [name, value] : fields::members(at(point, {"params"})))
    text += fmt::format(", {}={}", name, fields::text(value, {}));
  return text;
}

// "1.23 ms  1.00 *": the median, and its ratio to the best of its column.
std::string sweep_cell(const Json& points, const std::string& size, int queues, int streams) {
  for (const Json& point : points) {
    if (at(point, {"queues"}) != queues || at(point, {"streams"}) != streams || size_of(point) != size) continue;
    if (at(point, {"status"}) != "complete") return fields::text(point, {"status"});
    const Json& verdict = at(point, {"verdict"});
    const char mark = verdict == "best" ? '*' : verdict == "same" ? '=' : verdict.is_null() ? '?' : ' ';
    const Json& ratio = at(point, {"ratio"});
    return fmt::format("{} {:>6} {}", format_duration(at(point, {"latency_ns", "p50"}).get<double>()),
                       ratio.is_number() ? fmt::format("{:.2f}", ratio.get<double>()) : "-", mark);
  }
  return "-";
}

std::string sweep_matrix(const Json& points, const std::string& size, const std::set<int>& queues,
                         const std::vector<int>& streams) {
  std::string text;
  for (std::size_t from = 0; from < streams.size(); from += kCellsPerLine) {
    const std::size_t to = std::min(from + kCellsPerLine, streams.size());
    std::string head = fmt::format("{:<{}}", "queues", kHeadWidth);
    for (std::size_t i = from; i < to; ++i)
      head += fmt::format("{:>{}}", fmt::format("{} stream{}  ", streams[i], streams[i] == 1 ? "" : "s"), kCellWidth);
    text += head + "\n";
    for (const int count : queues) {
      std::string row = fmt::format("{:<{}}", count, kHeadWidth);
      for (std::size_t i = from; i < to; ++i)
        row += fmt::format("{:>{}}", sweep_cell(points, size, count, streams[i]), kCellWidth);
      while (row.ends_with(' ')) row.pop_back();
      text += row + "\n";
    }
    text += "\n";
  }
  return text;
}

void add_wrapped(std::string& out, const std::string& words) { out += wrapped(words, 0) + "\n"; }

}  // namespace

std::string describe_queues_sweep(const Json& document) {
  const Json& sweep = at(document, {"sweep"});
  const Json& points = at(sweep, {"points"});
  const Json& settings = at(sweep, {"settings"});
  std::string out = "\n";
  add_wrapped(out, fmt::format("{} on {} ({}): median latency of an iteration, and how many times the best queue count "
                               "of its column. Each point is {} {} its own; queues set by {}.",
                               fields::text(settings, {"workload"}), fields::text(settings, {"device"}),
                               fields::text(settings, {"model"}), fields::text(settings, {"repeats"}),
                               at(settings, {"repeats"}) == 1 ? "process of" : "processes of",
                               fields::text(settings, {"queues_set_by"})));
  out += "\n";
  std::vector<std::string> sizes;
  for (const Json& point : points)
    if (std::find(sizes.begin(), sizes.end(), size_of(point)) == sizes.end()) sizes.push_back(size_of(point));
  for (const std::string& size : sizes) {
    std::set<int> queues, streams;
    for (const Json& point : points) {
      if (size_of(point) != size) continue;
      queues.insert(at(point, {"queues"}).get<int>());
      streams.insert(at(point, {"streams"}).get<int>());
    }
    add_wrapped(out, size);
    out += sweep_matrix(points, size, queues, {streams.begin(), streams.end()});
    for (const Json& best : at(sweep, {"best"}))
      if (size_of(best) == size)
        add_wrapped(out, fmt::format("{} stream{}: {}.", fields::text(best, {"streams"}),
                                     at(best, {"streams"}) == 1 ? "" : "s", fields::text(best, {"sentence"})));
    out += "\n";
  }
  if (points.empty())
    add_wrapped(out, "No point was finished.");
  else
    add_wrapped(out, "* best of its column; = no difference to it beyond noise; ? too few samples.");
  for (const Json& warning : at(document, {"warnings"}))
    add_wrapped(out,
                fmt::format("Careful: {}. {}", fields::text(warning, {"text"}), fields::text(warning, {"advice"})));
  return out;
}

}  // namespace weir
