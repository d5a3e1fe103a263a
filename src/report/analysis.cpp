#include "report/analysis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/units.h"
#include "report/fields.h"

namespace weir {
namespace {

using fields::at;
using fields::number;

std::string duration(const Json& json, const char* key) {
  const auto value = number(json, {key});
  return value ? format_duration(*value) : "-";
}

std::string percent(std::optional<double> share) { return share ? fmt::format("{:.1f} %", 100 * *share) : "-"; }

std::string count(const Json& json, const char* key) {
  const auto value = number(json, {key});
  return value ? fmt::format("{:.0f}", *value) : "-";
}

// "1 stream", "4 streams"
std::string counted(const Json& json, const char* key, const char* noun) {
  const std::string value = count(json, key);
  return fmt::format("{} {}{}", value, noun, value == "1" ? "" : "s");
}

std::string word(const Json& json, const char* key) { return fields::text(json, {key}); }

std::string share_of(const Json& json, const char* part, const char* whole) {
  const auto a = number(json, {part}), b = number(json, {whole});
  return a && b && *b > 0 ? percent(*a / *b) : "-";
}

std::string with_share(const Json& times, const char* part, const char* whole) {
  return fmt::format("{} ({})", duration(times, part), share_of(times, part, whole));
}

std::vector<double> numbers(const Json& list) {
  std::vector<double> values;
  if (list.is_array())
    for (const Json& value : list) values.push_back(value.is_number() ? value.get<double>() : 0);
  return values;
}

std::string joined(const Json& list, std::size_t most) {
  std::string text;
  std::size_t shown = 0;
  for (const Json& item : list) {
    if (shown == most) return text + fmt::format(" and {} more", list.size() - most);
    text += (shown++ > 0 ? ", " : "") + (item.is_string() ? item.get<std::string>() : item.dump());
  }
  return text;
}

ReportSection times_section(const Json& device) {
  ReportSection section;
  section.title = "Where the time went";
  const Json& times = at(device, {"times"});
  if (!times.is_object()) {
    section.remarks.push_back(fields::text(device, {"unavailable", "times"}));
    return section;
  }
  const auto fact = [&](const char* label, const char* key, const char* whole) {
    section.facts.emplace_back(label, with_share(times, key, whole));
  };
  section.facts.emplace_back("span", fmt::format("{}, first start to last end", duration(times, "span_ns")));
  fact("busy", "busy_ns", "span_ns");
  fact("idle", "idle_ns", "span_ns");
  fact("compute", "compute_ns", "span_ns");
  if (number(times, {"communication_ns"}).value_or(0) > 0) {
    fact("communication", "communication_ns", "span_ns");
    section.facts.emplace_back(
        "  hidden",
        fmt::format("{} of it, while compute ran", with_share(times, "hidden_communication_ns", "communication_ns")));
    section.facts.emplace_back("  exposed",
                               fmt::format("{} of it, while no compute ran; {} while nothing else ran at all",
                                           with_share(times, "exposed_communication_ns", "communication_ns"),
                                           duration(times, "alone_communication_ns")));
  }
  if (number(times, {"copy_ns"}).value_or(0) > 0)
    section.facts.emplace_back("copies",
                               fmt::format("{}, {} of it while compute ran", with_share(times, "copy_ns", "span_ns"),
                                           duration(times, "hidden_copy_ns")));
  section.facts.emplace_back("two or more at once",
                             fmt::format("{} of busy", with_share(times, "overlapped_ns", "busy_ns")));
  if (const auto mean = number(device, {"concurrency", "all", "mean"}))
    section.facts.emplace_back("commands at once", fmt::format("{:.2f} on average while busy, {} at most", *mean,
                                                               count(at(device, {"concurrency", "all"}), "max")));
  if (const Json& backlog = at(device, {"lanes", "backlog"}); backlog.is_object()) {
    section.facts.emplace_back("backlog", fmt::format("{} commands at most, {:.1f} on average; over time:",
                                                      count(backlog, "peak"), number(backlog, {"mean"}).value_or(0)));
    section.facts.emplace_back("", "[" + sparkline(numbers(at(backlog, {"max_in_bucket"})), 48) + "]");
  }
  return section;
}

ReportSection iterations_section(const Json& device, std::size_t most) {
  ReportSection section;
  section.title = "Iterations";
  ReportTable table;
  table.columns = {{"iteration", true}, {"commands"}, {"span"}, {"busy"}, {"compute"}, {"comm."}, {"exposed"}};
  const Json& list = at(device, {"iterations", "list"});
  for (const Json& each : list) {
    if (table.rows.size() == most) break;
    const Json& times = each["times"];
    table.rows.push_back({each["name"].is_string() ? word(each, "name") : count(each, "number"),
                          count(each, "commands"), duration(times, "span_ns"), duration(times, "busy_ns"),
                          duration(times, "compute_ns"), duration(times, "communication_ns"),
                          duration(times, "exposed_communication_ns")});
  }
  const auto all = number(device, {"iterations", "count"}).value_or(0);
  if (all > static_cast<double>(table.rows.size()))
    table.after = fmt::format("and {:.0f} more", all - static_cast<double>(table.rows.size()));
  section.tables.push_back(std::move(table));
  return section;
}

ReportTable lanes_table(const Json& lanes, const char* what, std::size_t most) {
  std::vector<const Json*> order;
  for (const Json& lane : lanes) order.push_back(&lane);
  std::stable_sort(order.begin(), order.end(), [](const Json* a, const Json* b) {
    return number(*a, {"busy_ns"}).value_or(0) > number(*b, {"busy_ns"}).value_or(0);
  });
  ReportTable table;
  table.columns = {{what, true}, {"commands"}, {"busy"}, {"of the span"}, {"backlog, most"}, {"mean"}};
  for (const Json* lane : order) {
    if (table.rows.size() == most) break;
    const Json& backlog = (*lane)["backlog"];
    const auto mean = number(backlog, {"mean"});
    table.rows.push_back({word(*lane, what), count(*lane, "commands"), duration(*lane, "busy_ns"),
                          percent(number(*lane, {"utilisation"})), count(backlog, "peak"),
                          mean ? fmt::format("{:.1f}", *mean) : "-"});
  }
  if (order.size() > table.rows.size())
    table.after = fmt::format("and {} more, which did less", order.size() - table.rows.size());
  return table;
}

ReportSection queues_section(const Json& device, std::size_t most) {
  ReportSection section;
  section.title = "Streams and hardware queues";
  section.tables.push_back(lanes_table(at(device, {"lanes", "streams"}), "stream", most));
  if (const Json& queues = at(device, {"lanes", "queues"}); queues.is_array() && !queues.empty())
    section.tables.push_back(lanes_table(queues, "queue", most));
  const Json& map = at(device, {"queue_map"});
  if (!map.is_object()) {
    section.remarks.push_back(
        fmt::format("Which queue a stream used: not known, {}.", fields::text(device, {"unavailable", "queue_map"})));
    return section;
  }
  const std::string fixed = !map["is_fixed"].is_boolean() ? ""
                            : map["is_fixed"].get<bool>()
                                ? "Every stream kept its queue. "
                                : fmt::format("Streams moved between queues {} times. ", count(map, "change_count"));
  section.remarks.push_back(fmt::format("{}{} shared, by {}.", fixed, counted(map, "shared_queues", "queue"),
                                        counted(map, "sharing_streams", "stream")));
  std::size_t shown = 0;
  for (const Json& queue : map["queues"]) {
    if (queue["streams"].size() < 2) continue;
    if (++shown > 8) break;
    section.remarks.push_back(fmt::format("{}: {}", word(queue, "queue"), joined(queue["streams"], 8)));
  }
  return section;
}

ReportSection serialisation_section(const Json& device, std::size_t most) {
  ReportSection section;
  section.title = "False serialisation";
  const Json& found = at(device, {"false_serialisation"});
  if (!found.is_object()) {
    section.remarks.push_back(
        fmt::format("Not known: {}.", fields::text(device, {"unavailable", "false_serialisation"})));
    return section;
  }
  const bool is_known = found["are_dependencies_known"].is_boolean() && found["are_dependencies_known"].get<bool>();
  section.facts.emplace_back("back to back",
                             fmt::format("{} pairs of different streams on one queue", count(found, "back_to_back")));
  section.facts.emplace_back(
      "though ready", fmt::format("{} of them: the second was ready while the first ran", count(found, "pairs")));
  section.facts.emplace_back("lost", fmt::format("up to {}", duration(found, "lost_ns")));
  if (number(found, {"pairs"}).value_or(0) > 0) {
    ReportTable table;
    table.columns = {{"streams", true}, {"queue", true}, {"pairs"}, {"lost, up to"}};
    for (const Json& pair : found["by_streams"]) {
      if (table.rows.size() == most) break;
      table.rows.push_back(
          {joined(pair["streams"], 2), word(pair, "queue"), count(pair, "pairs"), duration(pair, "lost_ns")});
    }
    const double pairs = number(found, {"stream_pairs"}).value_or(0);
    if (pairs > static_cast<double>(table.rows.size()))
      table.after = fmt::format("and {:.0f} more pairs of streams", pairs - static_cast<double>(table.rows.size()));
    section.tables.push_back(std::move(table));
  }
  if (!is_known)
    section.remarks.push_back(
        "The source records no waits between streams, so these are candidates: a dependency that "
        "it does not show may tie them.");
  return section;
}

ReportSection host_section(const Json& device) {
  ReportSection section;
  section.title = "Host and device";
  if (const Json& bound = at(device, {"launch_bound"}); bound.is_object()) {
    section.facts.emplace_back(
        "launch-bound",
        fmt::format("{} in {} gaps, {} of the idle time: the host had not asked for the next command",
                    duration(bound, "host_ns"), count(bound, "host_gaps"), percent(number(bound, {"share_of_idle"}))));
    section.facts.emplace_back("  then",
                               fmt::format("{} more from the call to the start", duration(bound, "launch_ns")));
    if (!bound["outside_ns"].is_null())
      section.facts.emplace_back("  meanwhile",
                                 fmt::format("the host waited for the device {}, was in other calls {}, "
                                             "outside of the driver {}",
                                             duration(bound, "synchronizing_ns"), duration(bound, "in_calls_ns"),
                                             duration(bound, "outside_ns")));
  } else {
    section.facts.emplace_back("launch-bound",
                               fmt::format("not known: {}", fields::text(device, {"unavailable", "launch_bound"})));
  }
  if (const Json& blocked = at(device, {"host_blocked"}); blocked.is_object()) {
    const auto calls = [&](const char* label, const char* key, const char* words) {
      const Json& found = blocked[key];
      if (number(found, {"count"}).value_or(0) > 0)
        section.facts.emplace_back(
            label, fmt::format("{} in {} calls{}", duration(found, "total_ns"), count(found, "count"), words));
    };
    section.facts.emplace_back("launches", fmt::format("{}, {} each (median); {} commands ahead of the device at most",
                                                       count(blocked, "launches"), duration(blocked, "launch_p50_ns"),
                                                       count(blocked, "most_backlog")));
    calls("queue full", "queue_full", ": launches that blocked behind a deep backlog");
    calls("slow launches", "slow", " without such a backlog");
    calls("synchronising", "synchronize", "");
    calls("blocking copies", "copies", "");
  } else {
    section.facts.emplace_back("host blocked",
                               fmt::format("not known: {}", fields::text(device, {"unavailable", "host_blocked"})));
  }
  const auto gap = [&](const char* label, const char* key) {
    if (const Json& found = at(device, {"queue_switch", key}); found.is_object())
      section.facts.emplace_back(
          label, fmt::format("{} (median of {} gaps)", duration(found, "median_ns"), count(found, "count")));
  };
  gap("next, same stream", "same_stream");
  gap("next, same queue", "same_queue");
  gap("next, other queue", "other_queue");
  gap("next, other stream", "unknown_queue");
  return section;
}

ReportSection path_section(const Json& device, std::size_t most) {
  ReportSection section;
  section.title = "Critical path";
  const Json& path = at(device, {"critical_path"});
  if (!path.is_object()) {
    section.remarks.push_back(fmt::format("Not known: {}.", fields::text(device, {"unavailable", "critical_path"})));
    return section;
  }
  for (const auto& [resource, value] : path["resources"].items())
    if (number(value, {"ns"}).value_or(0) > 0)
      section.facts.emplace_back(resource,
                                 fmt::format("{} ({})", duration(value, "ns"), percent(number(value, {"share"}))));
  ReportTable table;
  table.columns = {{"on the path", true}, {"steps"}, {"time"}};
  for (const Json& each : path["names"]) {
    if (table.rows.size() == most) break;
    table.rows.push_back({word(each, "name"), count(each, "steps"), duration(each, "total_ns")});
  }
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  section.remarks.push_back(fmt::format("Seen: {}.", word(path, "known")));
  return section;
}

std::string bandwidth(const Json& json, const char* key) {
  const auto value = number(json, {key});
  return value ? fmt::format("{:.1f} GB/s", *value / 1e9) : "-";
}

ReportSection collectives_section(const Json& device, std::size_t most) {
  ReportSection section;
  section.title = "Collectives";
  ReportTable table;
  table.columns = {{"kind", true}, {"from"}, {"ranks"}, {"count"}, {"total"}, {"p50"}, {"p99"}, {"bus"}};
  const Json& classes = at(device, {"collectives", "classes"});
  for (const Json& each : classes) {
    if (table.rows.size() == most) break;
    const auto from = number(each, {"from_bytes"});
    table.rows.push_back({word(each, "kind"), from ? format_bytes(static_cast<std::uint64_t>(*from)) : "-",
                          count(each, "ranks"), count(each, "count"), duration(each, "total_ns"),
                          duration(each, "p50_ns"), duration(each, "p99_ns"), bandwidth(each, "bus_bandwidth")});
  }
  if (classes.size() > table.rows.size())
    table.after = fmt::format("and {} more classes", classes.size() - table.rows.size());
  section.tables.push_back(std::move(table));
  if (const Json& why = at(device, {"unavailable", "collectives.bandwidth"}); why.is_string())
    section.remarks.push_back(fmt::format("Bandwidth: {}.", why.get<std::string>()));
  if (const Json& slow = at(device, {"overlap_slowdown"}); slow.is_object()) {
    section.facts.emplace_back(
        "compute beside them",
        fmt::format("{:.3f}x as long as alone ({} kernels judged, {} clearly different, cost {})",
                    number(slow, {"ratio"}).value_or(0), count(slow, "names"), count(slow, "clear"),
                    duration(slow, "cost_ns")));
    ReportTable kernels;
    kernels.columns = {{"kernel", true}, {"alone"}, {"beside"}, {"ratio"}, {"n"}, {"p"}};
    for (const Json& each : slow["kernels"]) {
      if (kernels.rows.size() == most) break;
      kernels.rows.push_back({word(each, "name"), duration(each, "alone_p50_ns"), duration(each, "beside_p50_ns"),
                              fmt::format("{:.3f}", number(each, {"ratio"}).value_or(0)),
                              fmt::format("{}+{}", count(each, "alone"), count(each, "beside")),
                              fmt::format("{:.1g}", number(each, {"p"}).value_or(1))});
    }
    if (!kernels.rows.empty()) section.tables.push_back(std::move(kernels));
  } else {
    section.facts.emplace_back("compute beside them",
                               fmt::format("not known: {}", fields::text(device, {"unavailable", "overlap_slowdown"})));
  }
  return section;
}

ReportSection top_section(const Json& device, std::size_t most) {
  ReportSection section;
  section.title = "Top kernels";
  ReportTable table;
  table.columns = {{"name", true}, {"kind", true}, {"count"}, {"total"}, {"share"}, {"p50"}, {"p99"}};
  for (const Json& each : at(device, {"top", "top"})) {
    if (table.rows.size() == most) break;
    table.rows.push_back({word(each, "name"), word(each, "kind"), count(each, "count"), duration(each, "total_ns"),
                          percent(number(each, {"share"})), duration(each, "p50_ns"), duration(each, "p99_ns")});
  }
  const double kernels = number(device, {"top", "kernels"}).value_or(0);
  if (kernels > static_cast<double>(table.rows.size()))
    table.after = fmt::format("and {:.0f} other names", kernels - static_cast<double>(table.rows.size()));
  section.tables.push_back(std::move(table));
  return section;
}

ReportSection gaps_section(const Json& device) {
  ReportSection section;
  section.title = "Idle gaps";
  const Json& gaps = at(device, {"gaps", "device"});
  if (!gaps.is_object()) {
    section.remarks.push_back(fields::text(device, {"unavailable", "gaps.device"}));
    return section;
  }
  section.facts.emplace_back("gaps",
                             fmt::format("{}, {} in all; p50 {}, p95 {}, p99 {}, longest {}", count(gaps, "count"),
                                         duration(gaps, "total_ns"), duration(gaps, "p50_ns"), duration(gaps, "p95_ns"),
                                         duration(gaps, "p99_ns"), duration(gaps, "max_ns")));
  double most = 1;
  for (const Json& bin : gaps["histogram"]) most = std::max(most, number(bin, {"total_ns"}).value_or(0));
  ReportTable table;
  table.columns = {{"from"}, {"gaps"}, {"total"}, {"", true}};
  for (const Json& bin : gaps["histogram"]) {
    const double total = number(bin, {"total_ns"}).value_or(0);
    table.rows.push_back({duration(bin, "from_ns"), count(bin, "count"), duration(bin, "total_ns"),
                          std::string(static_cast<std::size_t>(30 * total / most + 0.5), '#')});
  }
  section.tables.push_back(std::move(table));
  return section;
}

void add_ranks(Report& report, const Json& document) {
  const Json& clocks = at(document, {"clocks"});
  if (!clocks.is_object()) return;
  ReportSection section;
  section.title = "Ranks";
  // What moved times is among the notes already.
  const Json& notes = at(document, {"notes"});
  if (std::find(notes.begin(), notes.end(), clocks["summary"]) == notes.end())
    section.remarks.push_back(word(clocks, "summary"));
  if (const Json& ranks = at(document, {"ranks"}); ranks.is_object()) {
    if (const Json& skew = ranks["skew"]; skew.is_object())
      section.facts.emplace_back(
          "skew of arrivals", fmt::format("p50 {}, p95 {}, p99 {}, most {} ({} collectives)", duration(skew, "p50_ns"),
                                          duration(skew, "p95_ns"), duration(skew, "p99_ns"), duration(skew, "max_ns"),
                                          count(skew, "instances")));
    ReportTable table;
    table.columns = {{"rank"}, {"collectives"}, {"in them"}, {"waiting"}, {"of its span"}, {"last"}, {"behind"}};
    for (const Json& rank : ranks["ranks"])
      table.rows.push_back({count(rank, "rank"), count(rank, "collectives"), duration(rank, "collective_ns"),
                            duration(rank, "waiting_ns"), percent(number(rank, {"wait_share"})),
                            percent(number(rank, {"last_share"})), duration(rank, "behind_ns")});
    section.tables.push_back(std::move(table));
    for (const Json& straggler : ranks["stragglers"])
      section.remarks.push_back(
          fmt::format("Straggler: rank {}, {}", count(straggler, "rank"), word(straggler, "reason")));
  } else {
    section.remarks.push_back(
        fmt::format("Skew between ranks is not known: {}.", fields::text(document, {"unavailable", "ranks"})));
  }
  report.sections.push_back(std::move(section));
}

// One row per device, where there are several.
void add_devices(Report& report, const Json& document) {
  const Json& devices = at(document, {"devices"});
  if (devices.size() < 2) return;
  ReportSection section;
  section.title = "Devices";
  ReportTable table;
  table.columns = {{"rank"}, {"device", true}, {"commands"}, {"span"}, {"busy"}, {"compute"}, {"comm."}, {"exposed"}};
  for (const Json& device : devices) {
    const Json& times = device["times"];
    table.rows.push_back({count(device, "rank"), word(device, "label"), count(device, "commands"),
                          duration(times, "span_ns"), duration(times, "busy_ns"), duration(times, "compute_ns"),
                          duration(times, "communication_ns"), duration(times, "exposed_communication_ns")});
  }
  section.tables.push_back(std::move(table));
  report.sections.push_back(std::move(section));
}

Report make_report(const Json& document, bool is_full) {
  const std::size_t most = is_full ? 1000 : 10;
  Report report;
  const Json& files = at(document, {"files"});
  report.title = files.size() == 1 ? fmt::format("weir analyze {}", word(files[0], "name"))
                                   : fmt::format("weir analyze: {} files", files.size());
  std::uint64_t bytes = 0;
  std::string formats;
  for (const Json& file : files) {
    bytes += static_cast<std::uint64_t>(number(file, {"bytes"}).value_or(0));
    if (const std::string format = word(file, "format"); formats.find(format) == std::string::npos)
      formats += (formats.empty() ? "" : ", ") + format;
  }
  report.opening.push_back(fmt::format("{}, {}; {} commands, {} host calls", formats, format_bytes(bytes),
                                       count(document, "commands"), count(document, "calls")));
  for (const Json& note : at(document, {"notes"}))
    report.opening.push_back("Note: " + (note.is_string() ? note.get<std::string>() : note.dump()));
  for (const Json& dropped : at(document, {"dropped"}))
    report.opening.push_back(fmt::format("Dropped: {} x {} (first: {})", count(dropped, "count"),
                                         word(dropped, "reason"), word(dropped, "first")));
  const Json& devices = at(document, {"devices"});
  if (devices.empty())
    report.opening.push_back(
        "The trace has no GPU commands, so there is nothing to analyse. Was the GPU traced (PyTorch: "
        "ProfilerActivity.CUDA)?");
  add_ranks(report, document);
  add_devices(report, document);
  // Of many devices the first one is told at length; the others have their row, and everything is in the JSON.
  const std::size_t told = is_full ? devices.size() : std::min<std::size_t>(devices.size(), 1);
  for (std::size_t i = 0; i < told; ++i) {
    const Json& device = devices[i];
    ReportSection head;
    head.title = fmt::format("Rank {}, {}: {} on {}{}", count(device, "rank"), word(device, "label"),
                             counted(device, "commands", "command"), counted(device, "streams", "stream"),
                             device["queues"].is_null() ? "" : ", " + counted(device, "queues", "hardware queue"));
    report.sections.push_back(std::move(head));
    report.sections.push_back(times_section(device));
    if (at(device, {"iterations"}).is_object()) report.sections.push_back(iterations_section(device, most));
    report.sections.push_back(queues_section(device, most));
    report.sections.push_back(serialisation_section(device, most));
    report.sections.push_back(host_section(device));
    report.sections.push_back(waterfall_section(at(device, {"waterfall"})));
    report.sections.push_back(path_section(device, is_full ? most : 5));
    if (at(device, {"collectives"}).is_object()) report.sections.push_back(collectives_section(device, most));
    report.sections.push_back(top_section(device, most));
    report.sections.push_back(gaps_section(device));
  }
  if (told < devices.size())
    report.sections.push_back(
        {"More",
         {},
         {},
         {fmt::format("The other {} devices are told with --full, and are in --report json.", devices.size() - told)}});
  return report;
}

}  // namespace

ReportSection waterfall_section(const Json& waterfall) {
  ReportSection section;
  section.title = "Waterfall: from the host to the device and back";
  for (const Json& each : at(waterfall, {"classes"})) {
    ReportTable table;
    table.columns = {{fmt::format("{} ({})", word(each, "kind"), count(each, "commands")), true},
                     {"p50"},
                     {"p95"},
                     {"p99"},
                     {"share"},
                     {"n"}};
    // Shares are of the way to the end: the host may look long after.
    double way = 0;
    for (const Json& hop : each["hops"])
      if (hop["to"] != "seen") way += number(hop, {"mean_ns"}).value_or(0);
    for (const Json& hop : each["hops"]) {
      const auto mean = number(hop, {"mean_ns"});
      const bool is_after = hop["to"] == "seen";
      table.rows.push_back({fmt::format("{} -> {}", word(hop, "from"), word(hop, "to")), duration(hop, "p50_ns"),
                            duration(hop, "p95_ns"), duration(hop, "p99_ns"),
                            is_after || way <= 0 ? "-" : percent(mean ? std::optional(*mean / way) : std::nullopt),
                            count(hop, "count")});
    }
    const std::string words = word(each, "words_to_end");
    table.after = words == "-" || words.empty() ? word(each, "words") : words;
    section.tables.push_back(std::move(table));
  }
  if (section.tables.empty()) section.remarks.push_back("No hop is known.");
  return section;
}

std::string analysis_text(const Json& document, bool is_full) { return report_text(make_report(document, is_full)); }

std::string analysis_markdown(const Json& document, bool is_full) {
  return report_markdown(make_report(document, is_full));
}

}  // namespace weir
