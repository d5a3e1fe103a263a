// weir.queues/2, switch: the cost of hops and false serialisation.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/queues_text.h"

namespace weir {
namespace {

using namespace queues_text;

constexpr std::size_t kStreamColumns = 7;  // stream counts side by side

std::string microseconds(std::optional<double> ns) {
  return ns ? fmt::format("{:.{}f}", *ns / 1000, *ns < 99'950 ? 1 : 0) : "-";
}

std::string p50_p90(const Json& row, const char* member) {
  const auto p50 = number(row, {member, "value", "p50"});
  if (!p50) return "-";
  return microseconds(p50) + "/" + microseconds(number(row, {member, "value", "p90"}));
}

// A table queues x streams, split into several where there are many stream counts.
void add_table(std::string& out, const Json& settings, const std::string& title,
               const std::function<std::string(const Json& row)>& cell) {
  std::set<int> streams;
  for (const Json& setting : settings)
    for (const Json& row : at(setting, {"rows"}))
      streams.insert(static_cast<int>(number(row, {"streams"}).value_or(0)));
  const std::vector<int> all(streams.begin(), streams.end());
  out += "  " + wrapped(title, 2) + "\n";
  for (std::size_t begin = 0; begin < all.size(); begin += kStreamColumns) {
    const std::size_t end = std::min(all.size(), begin + kStreamColumns);
    out += fmt::format("  {:>7}", "queues");
    for (std::size_t i = begin; i < end; ++i) out += fmt::format(" {:>9}", fmt::format("{} str", all[i]));
    out += '\n';
    for (const Json& setting : settings) {
      out += fmt::format("  {:>7}", text(setting, {"hardware_queues"}));
      for (std::size_t i = begin; i < end; ++i) {
        std::string words = "-";
        for (const Json& row : at(setting, {"rows"}))
          if (number(row, {"streams"}) == all[i]) words = cell(row);
        out += fmt::format(" {:>9}", words);
      }
      out += '\n';
    }
  }
  out += '\n';
}

bool has_any(const Json& settings, const char* member) {
  for (const Json& setting : settings)
    for (const Json& row : at(setting, {"rows"}))
      if (!at(row, {member, "value"}).is_null()) return true;
  return false;
}

// Why a whole table is missing. The row with the most streams says it best: with one stream the reason is often only
// that there is no other.
std::string reason_of_most_streams(const Json& settings, const char* member) {
  std::string found = "not measured";
  double most = 0;
  for (const Json& setting : settings)
    for (const Json& row : at(setting, {"rows"})) {
      const double streams = number(row, {"streams"}).value_or(0);
      if (streams < most || !at(row, {member, "reason"}).is_string()) continue;
      most = streams;
      found = text(row, {member, "reason"});
    }
  return found;
}

void add_gaps(std::string& out, const Json& settings, const char* member, const std::string& title) {
  if (has_any(settings, member)) {
    add_table(out, settings, title, [&](const Json& row) { return p50_p90(row, member); });
  } else {
    out += fmt::format("  {}\n\n", wrapped(title + ": none, " + reason_of_most_streams(settings, member), 2));
  }
}

// The overhead, from the timeline, of changing queues, else of changing streams within a queue, else with queues
// unknown.
std::string timeline_overhead(const Json& row) {
  for (const char* kind : {"other_queue_overhead_ns", "same_queue_overhead_ns", "unknown_queue_overhead_ns"})
    if (const auto ns = number(row, {"timeline", kind})) return microseconds(ns);
  return "-";
}

void add_timeline(std::string& out, const Json& settings) {
  bool has_one = false;
  for (const Json& setting : settings)
    for (const Json& row : at(setting, {"rows"})) has_one = has_one || timeline_overhead(row) != "-";
  const std::string title = "Reading 1, timeline: gap to another stream minus gap within a stream, us";
  if (has_one) {
    add_table(out, settings, title, timeline_overhead);
  } else {
    out += fmt::format("  {}\n\n", wrapped(title + ": none, " + reason_of_most_streams(settings, "timeline"), 2));
  }
}

std::string queue_ranges(const Json& ranges) {
  std::string words;
  for (const Json& range : ranges) {
    const std::string queues = text(range, {"hardware_queues"});
    const auto to = number(range, {"to_ns"});
    const double from = number(range, {"from_ns"}).value_or(0);
    if (!words.empty()) words += ", ";
    words += queues + (from == 0 && !to ? " for all kernels"
                       : to             ? " for kernels up to " + format_duration(*to)
                                        : " beyond " + format_duration(from));
  }
  return words;
}

void add_best(std::string& out, const Json& document, const Json& found) {
  const Json& best = at(found, {"best"});
  if (!best.is_array() || best.empty()) {
    if (const std::string why = reason(document, "switch.best"); !why.empty())
      out += fmt::format("  Where they cross is not known: {}\n", wrapped(why, 33));
    return;
  }
  out += fmt::format("  Where they cross: hop + time lost in vain per command, kernels of {}\n",
                     duration(found, {"kernel_ns"}));
  for (const Json& row : best)
    out += fmt::format("    {:>3} streams: {}\n", text(row, {"streams"}),
                       wrapped(fmt::format("{} queues cost least ({} per command); {}", text(row, {"hardware_queues"}),
                                           duration(row, {"ns_per_command"}), queue_ranges(at(row, {"ranges"}))),
                               17));
}

}  // namespace

std::string describe_switch(const Json& document) {
  std::string out = heading(document);
  const Json& found = at(document, {"switch"});
  const Json& settings = at(found, {"settings"});
  if (!settings.is_array() || settings.empty()) return out + "  nothing was measured\n";
  add_gaps(out, settings, "hops_ns",
           fmt::format("Gap between {} dependent kernels, each on the next stream: p50/p90 in us",
                       text(settings[0], {"hops"})));
  add_gaps(out, settings, "within_queue_ns", "Gaps between streams of one hardware queue: p50/p90 in us");
  add_gaps(out, settings, "across_queues_ns", "Gaps between hardware queues: p50/p90 in us");
  add_gaps(out, settings, "graph_ns", "The same chain as a graph: p50/p90 in us");
  add_timeline(out, settings);
  add_table(out, settings, "Reading 2, whole chains: cost of a hop over staying on one stream, us",
            [](const Json& row) { return microseconds(number(row, {"controlled", "ns_per_hop"})); });
  add_table(
      out, settings,
      fmt::format("False serialisation: time lost per kernel, {} kernels of {} per stream submitted stream by "
                  "stream, us",
                  text(settings[0], {"depth"}), duration(settings[0], {"parallel_ns"})),
      [](const Json& row) { return microseconds(number(row, {"serialisation", "value", "lost_ns_per_kernel"})); });
  add_best(out, document, found);
  warnings(out, document);
  return out;
}

}  // namespace weir
