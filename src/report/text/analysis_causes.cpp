// What delayed a device: shared queues, the host, the critical path, collectives.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "report/text/analysis_sections.h"
#include "report/text/analysis_words.h"

namespace weir::analysis {

ReportSection serialisation_section(const Json& device, std::size_t most) {
  ReportSection section{"False serialisation"};
  const Json& found = at(device, {"false_serialisation"});
  if (!found.is_object()) {
    section.remark("Not known: {}.", fields::text(device, {"unavailable", "false_serialisation"}));
    return section;
  }
  const bool is_known = is_true(found, {"are_dependencies_known"});
  const double pairs = number(found, {"pairs"}).value_or(0), behind = number(found, {"behind"}).value_or(0);
  if (pairs + behind == 0) {
    section.remark(number(device, {"queue_map", "shared_queues"}).value_or(0) > 0
                       ? "None: no command that was ready waited for another stream's on its queue."
                       : "None: no two streams share a hardware queue.");
    return section;
  }
  if (behind > 0)
    section.fact("behind others", "{} ready, behind another stream's command that was not; {} in sum",
                 counted(behind, "command"), duration(found, "behind_ns"));
  if (pairs > 0)
    section.fact("back to back", "{} ready while another stream's ran on its queue; {} in sum",
                 counted(pairs, "command"), duration(found, "lost_ns"));
  section.fact("lost", "up to {} of the span ({}): so long at least one waited", duration(found, "wall_ns"),
               percent(std::optional(number(found, {"wall_ns"}).value_or(0) /
                                     std::max(1.0, number(device, {"times", "span_ns"}).value_or(0)))));
  {
    ReportTable& table = section.table({{"streams", true}, {"queue", true}, {"commands"}, {"in sum"}});
    for (const Json& pair : first(at(found, {"by_streams"}), most))
      table.rows.push_back(
          {joined(at(pair, {"streams"}), 2), word(pair, "queue"), count(pair, "pairs"), duration(pair, "lost_ns")});
    const double all = number(found, {"stream_pairs"}).value_or(0);
    if (all > static_cast<double>(table.rows.size()))
      table.after = fmt::format("and {} more", counted(all - static_cast<double>(table.rows.size()), "pair"));
  }
  if (!is_known)
    section.remark(
        "The source records no waits between streams, so these are candidates: a dependency that "
        "it does not show may tie them.");
  return section;
}

ReportSection host_section(const Json& device) {
  ReportSection section{"Host and device"};
  if (const Json& bound = at(device, {"launch_bound"}); number(bound, {"host_gaps"}).value_or(-1) == 0) {
    section.fact("launch-bound", "never: whenever the device was idle, it had been asked for more");
  } else if (bound.is_object()) {
    section.fact("launch-bound", "{} in {}, {} of the idle time: the CPU had not launched the next command",
                 duration(bound, "host_ns"), counted(bound, "host_gaps", "gap"),
                 percent(number(bound, {"share_of_idle"})));
    section.fact("  then", "{} more from the call to the start", duration(bound, "launch_ns"));
    if (!at(bound, {"outside_ns"}).is_null())
      section.fact("  meanwhile",
                   "the host waited for the device {}, was in other calls {}, "
                   "in the program's own code {}",
                   duration(bound, "synchronizing_ns"), duration(bound, "in_calls_ns"), duration(bound, "outside_ns"));
  } else {
    section.fact("launch-bound", "not known: {}", fields::text(device, {"unavailable", "launch_bound"}));
  }
  if (const Json& bound = at(device, {"launch_bound"}); number(bound, {"calling_gaps"}).value_or(0) > 0)
    section.fact("launch-limited",
                 "{} in {}: the host was in the call that launches the next command; then {} "
                 "to its start",
                 duration(bound, "calling_ns"), counted(bound, "calling_gaps", "gap"),
                 duration(bound, "calling_launch_ns"));
  if (const Json& bound = at(device, {"launch_bound"}); number(bound, {"held_gaps"}).value_or(0) > 0)
    section.fact("held back", "{} in {}, {} at most: the device was idle though the driver had the next command",
                 duration(bound, "held_ns"), counted(bound, "held_gaps", "gap"), duration(bound, "held_most_ns"));
  if (const Json& blocked = at(device, {"host_blocked"}); blocked.is_object()) {
    const auto calls = [&](const char* label, const char* key, const char* words) {
      const Json& found = at(blocked, {key});
      if (number(found, {"count"}).value_or(0) > 0)
        section.fact(label, "{} in {}{}", duration(found, "total_ns"), counted(found, "count", "call"), words);
    };
    if (number(blocked, {"launches"}).value_or(0) > 0)
      section.fact("launches", "{}, {} each (median); {} ahead of the device at most", count(blocked, "launches"),
                   duration(blocked, "launch_ns", "p50"), counted(blocked, "most_backlog", "command"));
    calls("queue full", "queue_full", ": launches that blocked behind a deep backlog");
    calls("slow launches", "slow", " without such a backlog");
    const auto lines = [&](const char* key) {
      std::size_t shown = 0;
      for (const Json& site : at(blocked, {key, "sites"}))
        if (at(site, {"line"}).is_string() && ++shown <= 3)
          section.fact("", "{} in {}, {} at {}", duration(site, "total_ns"), counted(site, "count", "call"),
                       word(site, "call"), word(site, "line"));
    };
    calls("synchronising", "synchronize", "");
    lines("synchronize");
    calls("blocking copies", "copies", "");
    lines("copies");
  } else {
    section.fact("host blocked", "not known: {}", fields::text(device, {"unavailable", "host_blocked"}));
  }
  if (const Json& loading = at(device, {"data_loading"}); loading.is_object())
    section.fact("data loading", "{} in {}; the device was idle for {} of it", duration(loading, "total_ns"),
                 counted(loading, "waits", "wait"), with_share(loading, "idle_ns", "total_ns"));
  const auto gap = [&](const char* label, const char* key) {
    if (const Json& found = at(device, {"queue_switch", key}); found.is_object())
      section.fact(label, "{} (median of {})", duration(found, "p50"), counted(found, "count", "gap"));
  };
  gap("next, same stream", "same_stream_ns");
  gap("next, same queue", "same_queue_ns");
  gap("next, other queue", "other_queue_ns");
  gap("next, other stream", "unknown_queue_ns");
  return section;
}

ReportSection path_section(const Json& device, std::size_t most) {
  ReportSection section{"Critical path"};
  const Json& path = at(device, {"critical_path"});
  if (!path.is_object()) {
    section.remark("Not known: {}.", fields::text(device, {"unavailable", "critical_path"}));
    return section;
  }
  for (const auto& [resource, value] : fields::members(at(path, {"resources"})))
    if (number(value, {"ns"}).value_or(0) > 0)
      section.fact(resource, "{} ({})", duration(value, "ns"), percent(number(value, {"share"})));
  if (const Json& caveat = at(path, {"caveat"}); caveat.is_string()) {
    section.remark(sentence(fields::text(caveat, {})));
    return section;
  }
  ReportTable table{{{"on the path", true}, {"steps"}, {"time"}}};
  for (const Json& each : first(at(path, {"names"}), most))
    table.rows.push_back({word(each, "name"), count(each, "steps"), duration(each, "total_ns")});
  section.add_unless_empty(std::move(table));
  section.remark("Seen: {}.", word(path, "known"));
  return section;
}

ReportSection exposed_section(const Json& device) {
  ReportSection section{"Exposed communication: why nothing else ran"};
  const Json& found = at(device, {"exposed_causes"});
  const Json& causes = at(found, {"causes"});
  ReportTable& table =
      section.table({{"cause", true}, {"time"}, {"share"}, {"stretches"}, {"longest"}, {"what waited", true}});
  for (const Json& cause : causes) {
    const Json worst = at(cause, {"worst"}).empty() ? Json() : at(cause, {"worst"})[0];
    table.rows.push_back({word(cause, "cause"), duration(cause, "total_ns"), percent(number(cause, {"share"})),
                          count(cause, "stretches"), duration(worst, "took_ns"), word(worst, "blocked")});
  }
  for (const Json& cause : causes) {
    if (number(cause, {"share"}).value_or(0) < 0.05) continue;
    const std::string name = word(cause, "cause");
    const bool is_unknown = name == "unknown" && at(found, {"reason"}).is_string();
    section.remark("{}: {}. {}.", name, word(is_unknown ? found : cause, is_unknown ? "reason" : "meaning"),
                   sentence(word(cause, "advice")));
  }
  return section;
}

namespace {

std::string bandwidth(const Json& json, const char* key) {
  const auto value = number(json, {key});
  return value ? fmt::format("{:.1f}", *value / 1e9) : "-";
}

}  // namespace

ReportSection collectives_section(const Json& device, std::size_t most) {
  ReportSection section{"Collectives"};
  ReportTable& table = section.table(
      {{"kind", true}, {"from"}, {"ranks"}, {"count"}, {"total"}, {"p50"}, {"alg. GB/s"}, {"bus GB/s"}, {"best"}});
  const Json& classes = at(device, {"collectives", "classes"});
  // Those with most time, each kind by size, as tables of bandwidths are read.
  std::vector<const Json*> order;
  for (const Json& each : first(classes, most)) order.push_back(&each);
  std::stable_sort(order.begin(), order.end(), [](const Json* a, const Json* b) {
    return std::pair(word(*a, "kind"), number(*a, {"from_bytes"}).value_or(0)) <
           std::pair(word(*b, "kind"), number(*b, {"from_bytes"}).value_or(0));
  });
  for (const Json* one : order) {
    const Json& each = *one;
    const auto from = number(each, {"from_bytes"});
    table.rows.push_back({word(each, "kind"), from ? format_bytes(static_cast<std::uint64_t>(*from)) : "-",
                          count(each, "ranks"), count(each, "count"), duration(each, "total_ns"),
                          duration(each, "duration_ns", "p50"), bandwidth(each, "algorithm_bytes_per_s"),
                          bandwidth(each, "bus_bytes_per_s"), bandwidth(each, "best_bus_bytes_per_s")});
  }
  if (classes.size() > table.rows.size())
    table.after = fmt::format("and {} more classes", classes.size() - table.rows.size());
  if (const Json& why = at(device, {"unavailable", "collectives.bandwidth"}); why.is_string())
    section.remark("Bandwidth: {}.", fields::text(why, {}));
  if (const Json& slow = at(device, {"overlap_slowdown"}); slow.is_object()) {
    section.fact("compute beside them", "{:.2f}x as long as alone, {} in all ({} judged, {} clearly different){}",
                 number(slow, {"ratio"}).value_or(0), duration(slow, "cost_ns"), counted(slow, "names", "kernel"),
                 count(slow, "clear"),
                 number(slow, {"ratio"}).value_or(1) < 1 ? "; faster: one name may stand for several sizes" : "");
    ReportTable kernels{{{"kernel", true}, {"alone"}, {"beside"}, {"ratio"}, {"n"}, {"p"}}};
    for (const Json& each : first(at(slow, {"kernels"}), most))
      kernels.rows.push_back({word(each, "name"), duration(each, "alone_ns", "p50"), duration(each, "beside_ns", "p50"),
                              fmt::format("{:.3f}", number(each, {"ratio"}).value_or(0)),
                              fmt::format("{}+{}", count(each, "alone"), count(each, "beside")),
                              fmt::format("{:.1g}", number(each, {"p"}).value_or(1))});
    section.add_unless_empty(std::move(kernels));
  } else {
    section.fact("compute beside them", "not known: {}", fields::text(device, {"unavailable", "overlap_slowdown"}));
  }
  return section;
}

}  // namespace weir::analysis
