// How a device was used: times, iterations, streams, queues, kernels and gaps.
#include <fmt/format.h>

#include <algorithm>

#include "report/text/analysis_sections.h"
#include "report/text/analysis_words.h"

namespace weir::analysis {

ReportSection times_section(const Json& device) {
  ReportSection section{"Where the time went"};
  const Json& times = at(device, {"times"});
  if (!times.is_object()) {
    section.remark(fields::text(device, {"unavailable", "times"}));
    return section;
  }
  const auto fact = [&](const char* label, const char* key, const char* whole) {
    section.fact(label, with_share(times, key, whole));
  };
  section.fact("span", "{}, first start to last end", duration(times, "span_ns"));
  fact("busy", "busy_ns", "span_ns");
  fact("idle", "idle_ns", "span_ns");
  fact("compute", "compute_ns", "span_ns");
  if (number(times, {"communication_ns"}).value_or(0) > 0) {
    fact("communication", "communication_ns", "span_ns");
    section.fact("  hidden", "{} of it, while something else ran; {} while compute ran",
                 with_share(times, "hidden_communication_ns", "communication_ns"),
                 duration(times, "communication_beside_compute_ns"));
    section.fact("  exposed", "{} of it, while nothing else ran",
                 with_share(times, "exposed_communication_ns", "communication_ns"));
  }
  if (number(times, {"copy_ns"}).value_or(0) > 0)
    section.fact("copies", "{}, {} of it while compute ran", with_share(times, "copy_ns", "span_ns"),
                 duration(times, "copy_beside_compute_ns"));
  section.fact("two or more at once", "{} of busy", with_share(times, "overlapped_ns", "busy_ns"));
  if (const auto mean = number(device, {"concurrency", "all", "mean"}))
    section.fact("commands at once", "{:.2f} on average while busy, {} at most", *mean,
                 count(at(device, {"concurrency", "all"}), "max"));
  if (const Json& backlog = at(device, {"lanes", "backlog"}); backlog.is_object()) {
    section.fact("backlog", "{} at most, {:.1f} on average; over time:", counted(backlog, "peak", "command"),
                 number(backlog, {"mean"}).value_or(0));
    section.fact("", "[" + sparkline(numbers(at(backlog, {"max_in_bucket"})), 48) + "]");
  }
  return section;
}

ReportSection work_section(const Json& device) {
  ReportSection section{"What the device worked on"};
  ReportTable& table = section.table({{"work", true}, {"commands"}, {"sum"}, {"of busy"}});
  for (const Json& each : at(device, {"work"}))
    table.rows.push_back(
        {word(each, "work"), count(each, "commands"), duration(each, "total_ns"), percent(number(each, {"share"}))});
  return section;
}

ReportSection iterations_section(const Json& device, std::size_t most) {
  ReportSection section{"Iterations"};
  ReportTable& table = section.table(
      {{"iteration", true}, {"commands"}, {"span"}, {"busy"}, {"compute"}, {"comm."}, {"exposed"}, {"hidden"}});
  const Json& list = at(device, {"iterations", "list"});
  for (const Json& each : first(list, most)) {
    const Json& times = at(each, {"times"});
    table.rows.push_back({at(each, {"name"}).is_string() ? word(each, "name") : count(each, "number"),
                          count(each, "commands"), duration(times, "span_ns"), duration(times, "busy_ns"),
                          duration(times, "compute_ns"), duration(times, "communication_ns"),
                          duration(times, "exposed_communication_ns"), percent(number(each, {"overlap_efficiency"}))});
  }
  const auto all = number(device, {"iterations", "count"}).value_or(0);
  if (all > static_cast<double>(table.rows.size()))
    table.after = fmt::format("and {:.0f} more", all - static_cast<double>(table.rows.size()));
  return section;
}

namespace {

ReportTable lanes_table(const Json& lanes, const char* what, std::size_t most) {
  std::vector<const Json*> order;
  for (const Json& lane : lanes) order.push_back(&lane);
  std::stable_sort(order.begin(), order.end(), [](const Json* a, const Json* b) {
    return number(*a, {"busy_ns"}).value_or(0) > number(*b, {"busy_ns"}).value_or(0);
  });
  const bool has_backlog =
      std::any_of(order.begin(), order.end(), [](const Json* lane) { return at(*lane, {"backlog"}).is_object(); });
  ReportTable table{{{what, true}, {"commands"}, {"busy"}, {"of the span"}}};
  if (has_backlog) table.columns.insert(table.columns.end(), {{"backlog, most"}, {"mean"}});
  for (const Json* lane : order) {
    if (table.rows.size() == most) break;
    table.rows.push_back({word(*lane, what), count(*lane, "commands"), duration(*lane, "busy_ns"),
                          percent(number(*lane, {"utilisation"}))});
    if (!has_backlog) continue;
    const Json& backlog = at(*lane, {"backlog"});
    const auto mean = number(backlog, {"mean"});
    table.rows.back().push_back(count(backlog, "peak"));
    table.rows.back().push_back(mean ? fmt::format("{:.1f}", *mean) : "-");
  }
  if (order.size() > table.rows.size())
    table.after = fmt::format("and {} more, which did less", order.size() - table.rows.size());
  return table;
}

}  // namespace

ReportSection queues_section(const Json& device, std::size_t most) {
  ReportSection section{"Streams and hardware queues"};
  section.tables.push_back(lanes_table(at(device, {"lanes", "streams"}), "stream", most));
  const Json& map = at(device, {"queue_map"});
  if (!map.is_object()) {
    section.remark("Which queue a stream used: not known, {}.", fields::text(device, {"unavailable", "queue_map"}));
    return section;
  }
  const bool is_fixed = is_true(map, {"is_fixed"});
  const bool is_shared = number(map, {"shared_queues"}).value_or(0) > 0;
  // With one queue per stream, a table of queues would repeat the table of streams.
  if (is_fixed && !is_shared) {
    section.remark("Every stream kept a hardware queue of its own.");
    return section;
  }
  if (const Json& queues = at(device, {"lanes", "queues"}); queues.is_array() && !queues.empty())
    section.tables.push_back(lanes_table(queues, "queue", most));
  const std::string fixed =
      !at(map, {"is_fixed"}).is_boolean() ? ""
      : is_fixed                          ? "Every stream kept its queue. "
                 : fmt::format("Streams moved between queues {}. ", counted(map, "change_count", "time"));
  section.remark(is_shared ? fmt::format("{}{} shared, by {}.", fixed, counted(map, "shared_queues", "queue"),
                                         counted(map, "sharing_streams", "stream"))
                           : fixed + "No two streams shared a queue.");
  std::size_t shown = 0;
  for (const Json& queue : at(map, {"queues"})) {
    if (at(queue, {"streams"}).size() < 2) continue;
    if (++shown > 8) break;
    section.remark("{}: {}", word(queue, "queue"), joined(at(queue, {"streams"}), 8));
  }
  return section;
}

ReportSection top_section(const Json& device, std::size_t most) {
  ReportSection section{"Top kernels"};
  const auto rows = first(at(device, {"top", "top"}), most);
  // Names need the room: a column that says "kernel" on every line goes.
  const bool has_kinds =
      std::any_of(rows.begin(), rows.end(), [](const Json& each) { return word(each, "kind") != "kernel"; });
  std::vector<ReportTable::Column> columns = {{"name", true}, {"kind", true}, {"count"}, {"total"},
                                              {"share"},      {"p50"},        {"p99"}};
  if (!has_kinds) columns.erase(columns.begin() + 1);
  ReportTable& table = section.table(std::move(columns));
  for (const Json& each : rows) {
    table.rows.push_back({word(each, "name"), word(each, "kind"), count(each, "count"), duration(each, "total_ns"),
                          percent(number(each, {"share"})), duration(each, "duration_ns", "p50"),
                          duration(each, "duration_ns", "p99")});
    if (!has_kinds) table.rows.back().erase(table.rows.back().begin() + 1);
  }
  const double kernels = number(device, {"top", "kernels"}).value_or(0);
  if (kernels > static_cast<double>(table.rows.size()))
    table.after = fmt::format("and {}", counted(kernels - static_cast<double>(table.rows.size()), "other name"));
  return section;
}

ReportSection gaps_section(const Json& device) {
  ReportSection section{"Idle gaps"};
  const Json& gaps = at(device, {"gaps", "device"});
  if (!gaps.is_object()) {
    section.remark(fields::text(device, {"unavailable", "gaps.device"}));
    return section;
  }
  section.fact("gaps", "{}, {} in all; p50 {}, p95 {}, p99 {}, longest {}", count(gaps, "count"),
               duration(gaps, "total_ns"), duration(gaps, "duration_ns", "p50"), duration(gaps, "duration_ns", "p95"),
               duration(gaps, "duration_ns", "p99"), duration(gaps, "duration_ns", "max"));
  // Clocks round below a microsecond, so shorter gaps share one row; empty bins are left out.
  constexpr double kShortest = 1'000;
  std::size_t short_gaps = 0;
  double short_ns = 0, most = 1;
  for (const Json& bin : at(gaps, {"histogram"})) {
    const double total = number(bin, {"total_ns"}).value_or(0);
    if (number(bin, {"from_ns"}).value_or(0) < kShortest) {
      short_gaps += static_cast<std::size_t>(number(bin, {"count"}).value_or(0));
      short_ns += total;
    }
    most = std::max({most, total, short_ns});
  }
  const auto bar = [&](double total) { return std::string(static_cast<std::size_t>(30 * total / most + 0.5), '#'); };
  ReportTable& table = section.table({{"from"}, {"gaps"}, {"total"}, {"", true}});
  if (short_gaps > 0)
    table.rows.push_back({"below", std::to_string(short_gaps), format_duration(short_ns), bar(short_ns)});
  for (const Json& bin : at(gaps, {"histogram"})) {
    const double total = number(bin, {"total_ns"}).value_or(0);
    if (number(bin, {"from_ns"}).value_or(0) < kShortest || number(bin, {"count"}).value_or(0) == 0) continue;
    table.rows.push_back({duration(bin, "from_ns"), count(bin, "count"), duration(bin, "total_ns"), bar(total)});
  }
  return section;
}

}  // namespace weir::analysis
