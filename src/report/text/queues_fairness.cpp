// weir.queues/2, fairness: how a full device was shared.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text/documents.h"
#include "report/text/queues_text.h"

namespace weir {
namespace {

using namespace queues_text;

constexpr double kBarPerShare = 20;  // characters for a fair share
constexpr double kLongestBar = 50;

// One line per stream: a bar on which the fair share is marked.
void add_bars(std::string& out, const Json& streams) {
  out += "\n  stream  priority   share  (| is fair)\n";
  for (const Json& stream : streams) {
    const double share = number(stream, {"share"}).value_or(0);
    std::string bar(static_cast<std::size_t>(std::lround(std::min(share * kBarPerShare, kLongestBar))), '#');
    bar.resize(std::max<std::size_t>(bar.size(), static_cast<std::size_t>(kBarPerShare)), ' ');
    bar.insert(static_cast<std::size_t>(kBarPerShare), "|");
    if (share * kBarPerShare > kLongestBar) bar += '>';
    out +=
        fmt::format("  {:>6}  {:>8}  {:>6.2f}  {}\n", text(stream, {"stream"}), text(stream, {"priority"}), share, bar);
  }
}

}  // namespace

std::string describe_fairness(const Json& document) {
  std::string out = heading(document);
  const Json& fairness = at(document, {"fairness"});
  const auto jain = number(fairness, {"jain"});
  line(out, "Jain's index",
       jain ? fmt::format("{:.3f} (1: all streams served equally; 1/streams: one has it all)", *jain)
            : "not known: " + reason(document, "fairness.jain"));
  if (!jain) return out;
  line(out, "shares",
       fmt::format("{:.2f} to {:.2f} of a fair one", number(fairness, {"least_share"}).value_or(NAN),
                   number(fairness, {"largest_share"}).value_or(NAN)));
  const Json& starved = at(fairness, {"starved"});
  std::string names;
  for (const Json& stream : starved) names += (names.empty() ? "" : ", ") + fields::text(stream, {});
  line(out, "starved", starved.empty() ? "none" : fmt::format("streams {}", names));
  line(out, "how",
       fmt::format("{} commands of {} blocks of {} on each of {} streams, {} priorities; {} blocks run at once; all "
                   "streams had work for {}",
                   text(fairness, {"commands_per_stream"}), text(fairness, {"blocks_per_command"}),
                   duration(fairness, {"block_ns"}), at(fairness, {"streams"}).size(), text(fairness, {"priorities"}),
                   text(fairness, {"blocks_at_once"}), duration(fairness, {"window_ns"})));
  if (at(fairness, {"by_priority"}).size() > 1)
    for (const Json& level : at(fairness, {"by_priority"}))
      line(out, fmt::format("priority {}", text(level, {"priority"})),
           fmt::format("{:.2f} of a fair share on average", number(level, {"mean_share"}).value_or(NAN)));
  add_bars(out, at(fairness, {"streams"}));
  warnings(out, document);
  return out;
}

}  // namespace weir
