// weir.amd_join/1: queues from stream to hardware slot, the evidence for matches, clocks.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

bool is_shown(const Json& queue, bool is_full) { return is_full || text(queue, {"role"}) != "other process"; }

std::string priority_text(const Json& queue) {
  const auto value = number(queue, {"runtime", "priority"});
  if (!value) return "-";
  return *value == 0 ? "low" : *value == 1 ? "norm" : *value == 2 ? "high" : fmt::format("{:.0f}", *value);
}

std::string streams_text(const Json& queue) {
  if (!at(queue, {"runtime"}).is_object()) return text(queue, {"role"}) == "internal" ? "own" : "-";
  const std::size_t known = at(queue, {"runtime", "streams"}).size();
  const auto most = number(queue, {"runtime", "streams_most"});
  // The log counts the streams on a queue, but does not always name them.
  if (known == 0 && most) return fmt::format("{:.0f}", *most);
  return known == 0 ? "-" : fmt::format("{}", known);
}

// Where it was last mapped: "0.2 x4", pipe and slot, on as many XCCs.
std::string slot_text(const Json& queue) {
  const Json& series = at(queue, {"hardware", "series"});
  if (!series.is_array()) return "-";
  for (std::size_t i = series.size(); i-- > 0;) {
    const Json& slots = at(series[i], {"slots"});
    if (!slots.is_array() || slots.empty()) continue;
    const std::string first = count(slots[0], {"pipe"}) + "." + count(slots[0], {"queue"});
    return slots.size() == 1 ? first : fmt::format("{} x{}", first, slots.size());
  }
  return "none";
}

// "R", "RQT": each key once, in legend order.
std::string evidence_text(const Json& queue) {
  static constexpr std::array<std::pair<const char*, char>, 5> kKeys = {
      {{"ring", 'R'}, {"queue id", 'Q'}, {"mqd", 'M'}, {"doorbell", 'D'}, {"time", 'T'}}};
  std::string out;
  for (const auto& [name, letter] : kKeys)
    for (const Json& each : at(queue, {"evidence"}))
      for (const Json& key : at(each, {"by"}))
        if (key == Json(name) && out.find(letter) == std::string::npos) out += letter;
  return out.empty() ? "-" : out;
}

std::string ring_text(const Json& queue) { return text(queue, {"ring_base"}); }

// Each reason once, with the number of queues that have it.
void add_missing_reasons(ReportSection& section, const Json& document, bool is_full) {
  std::map<std::pair<std::string, std::string>, std::size_t> reasons;
  for (const Json& queue : at(document, {"queues"}))
    if (is_shown(queue, is_full))
      for (const Json& missing : at(queue, {"missing"}))
        ++reasons[{text(missing, {"part"}), text(missing, {"reason"})}];
  for (const auto& [key, times] : reasons)
    section.remark("Not in the {} ({}): {}.", key.first, counted(times, "queue"), key.second);
}

// Slots and ids are per GPU, so with several GPUs each row must name its own. The "0x" of "0xf7bc" is dropped for room.
bool has_several_gpus(const Json& document, bool is_full) {
  std::set<std::string> gpus;
  for (const Json& queue : at(document, {"queues"}))
    if (is_shown(queue, is_full) && at(queue, {"gpu_id"}).is_string()) gpus.insert(text(queue, {"gpu_id"}));
  return gpus.size() > 1;
}
std::string gpu_text(const Json& queue) {
  const std::string gpu = text(queue, {"gpu_id"});
  return gpu.starts_with("0x") ? gpu.substr(2) : gpu;
}

void add_join_queues(TextReport& report, const Json& document, bool is_full) {
  ReportSection& section = report.section("Queues, from streams to hardware slots");
  std::size_t hidden = 0;
  const std::size_t snapshots = at(document, {"snapshots"}).size();
  const bool has_gpus = has_several_gpus(document, is_full);
  std::map<std::string, ReportTable> tables;  // by process of the host
  for (const Json& queue : at(document, {"queues"})) {
    if (!is_shown(queue, is_full)) {
      ++hidden;
      continue;
    }
    const std::string pid = count(queue, {"host_pid"});
    ReportTable& table = tables[pid];
    if (table.columns.empty()) {
      table.columns = {{pid == "-" ? "process not known" : "process " + pid, true},
                       {"streams"},
                       {"prio"},
                       {"ROCr"},
                       {"KFD"},
                       {"seen"},
                       {"slot"},
                       {"backlog"},
                       {"by"}};
      if (has_gpus) table.columns.insert(table.columns.begin() + 1, ReportTable::Column{"gpu"});
    }
    const Json& series = at(queue, {"hardware", "series"});
    table.rows.push_back({ring_text(queue), streams_text(queue), priority_text(queue),
                          count(queue, {"runtime", "rocr_id"}), count(queue, {"kfd", "queue_id"}),
                          fmt::format("{}/{}", series.is_array() ? series.size() : 0, snapshots), slot_text(queue),
                          count(queue, {"hardware", "most_backlog_packets"}), evidence_text(queue)});
    if (has_gpus) table.rows.back().insert(table.rows.back().begin() + 1, gpu_text(queue));
  }
  for (auto& [pid, table] : tables) section.tables.push_back(std::move(table));
  if (section.tables.empty())
    section.remark("No queue is in any part.");
  else
    section.tables.back().after =
        "A row is a ring. streams: own = the runtime's; prio, ROCr: the log's; KFD: queue id; seen: snapshots that "
        "show it; slot: pipe.queue x XCCs, when last mapped; backlog: packets, the most of its snapshots; by: what "
        "matches rest on: R ring, Q queue id, M MQD, D doorbell, T time.";
  if (hidden > 0) section.remark("{} of other processes: --full, or --json.", counted(hidden, "queue"));
  add_missing_reasons(section, document, is_full);
}

std::string range_of_durations(const Json& range, bool& has_mark) {
  if (!range.is_object()) return "-";
  const auto least = number(range, {"least_ns"}), most = number(range, {"most_ns"});
  if (!least) return "-";
  if (!most) return ">= " + format_duration(*least);
  if (!range.value("is_distinguishable", true)) {
    has_mark = true;
    return fmt::format("<= {}*", format_duration(*most));
  }
  const std::string low = format_duration(*least), high = format_duration(*most);
  if (low == high) return low;
  const std::size_t unit = low.find(' ');
  const bool is_same_unit = unit != std::string::npos && high.ends_with(low.substr(unit));
  return fmt::format("{}..{}", is_same_unit ? low.substr(0, unit) : low, high);
}

void add_creation(TextReport& report, const Json& document, bool is_full) {
  ReportTable table{{{"ring", true}, {"asked->ioctl"}, {"in KFD"}, {"left->created"}, {"whole"}}};
  bool has_mark = false;
  std::map<std::string, std::size_t> reasons;
  for (const Json& queue : at(document, {"queues"})) {
    if (!is_shown(queue, is_full)) continue;
    const Json& creation = at(queue, {"creation"});
    if (at(creation, {"asked_to_created"}).is_null() && at(creation, {"entered_to_left"}).is_null()) continue;
    table.rows.push_back({ring_text(queue), range_of_durations(at(creation, {"asked_to_entered"}), has_mark),
                          range_of_durations(at(creation, {"entered_to_left"}), has_mark),
                          range_of_durations(at(creation, {"left_to_created"}), has_mark),
                          range_of_durations(at(creation, {"asked_to_created"}), has_mark)});
    if (const Json& reason = at(creation, {"reason"}); reason.is_string()) ++reasons[fields::text(reason, {})];
  }
  std::vector<std::string> remarks;
  if (has_mark)
    remarks.emplace_back(
        "* not distinguishable from nothing: below the error of the clocks, or the return was not traced.");
  for (const auto& [reason, times] : reasons)
    remarks.push_back(fmt::format("Without hops ({}): {}.", counted(times, "queue"), reason));
  report.add_unless_empty("Creation, from the runtime to KFD and back", std::move(table), std::move(remarks));
}

void add_streams(TextReport& report, const Json& document) {
  ReportTable table{{{"ring", true}, {"stream", true}, {"priority"}}};
  for (const Json& queue : at(document, {"queues"}))
    for (const Json& stream : at(queue, {"runtime", "streams"}))
      table.rows.push_back({ring_text(queue), text(stream, {"handle"}), count(stream, {"priority"})});
  report.add_unless_empty("Streams", std::move(table));
}

void add_snapshot_series(TextReport& report, const Json& document) {
  ReportTable table{{{"ring", true}, {"snapshot", true}, {"active"}, {"slots"}, {"backlog"}, {"saved waves"}}};
  for (const Json& queue : at(document, {"queues"}))
    for (const Json& seen : at(queue, {"hardware", "series"})) {
      const Json& preempted = at(seen, {"was_preempted"});
      table.rows.push_back({ring_text(queue), text(seen, {"snapshot"}),
                            at(seen, {"is_active"}) == Json(true) ? "yes" : "no",
                            fmt::format("{}", at(seen, {"slots"}).size()), count(seen, {"backlog_packets"}),
                            preempted.is_boolean() ? (preempted.get<bool>() ? "yes" : "no") : "-"});
    }
  report.add_unless_empty("Snapshot by snapshot", std::move(table));
}

std::string clock_text(const Json& clock) {
  const auto offset = number(clock, {"offset_ns"});
  if (!offset) return fmt::format("not aligned: {}", text(clock, {"reason"}));
  const double error = number(clock, {"error_ns"}).value_or(0) + number(clock, {"stamp_error_ns"}).value_or(0);
  const std::string brackets =
      fmt::format("{} brackets, {} left out", count(clock, {"brackets"}), count(clock, {"left_out"}));
  if (text(clock, {"rests_on"}) == "same clock")
    return fmt::format("one and the same, stamps +-{} ({})", format_duration(error), brackets);
  return fmt::format("log = trace {} {}, +-{} ({}, {})", *offset < 0 ? "-" : "+", format_duration(std::abs(*offset)),
                     format_duration(error), text(clock, {"rests_on"}), brackets);
}

void add_rests(TextReport& report, const Json& document) {
  ReportSection& section = report.section("What it rests on");
  for (const Json& process : at(document, {"processes"})) {
    const std::string log = at(process, {"log_pid"}).is_null() ? "no pid" : text(process, {"log_pid"});
    if (at(process, {"host_pid"}).is_null())
      section.fact("process " + log, "not known on the host: {}", text(process, {"reason"}));
    else
      section.fact("process " + log, "{} on the host, by {}", text(process, {"host_pid"}), text(process, {"rests_on"}));
  }
  section.fact("clocks", clock_text(at(document, {"clock"})));
  std::map<std::string, std::size_t> shortfalls;  // for snapshots that were read anyway
  for (const Json& part : at(document, {"parts"})) {
    const std::string reason = at(part, {"reason"}).is_string() ? text(part, {"reason"}) : "";
    const bool is_read = at(part, {"is_read"}) == Json(true);
    if (is_read && text(part, {"name"}) == "snapshot") {
      if (!reason.empty()) ++shortfalls[reason];
      continue;
    }
    std::string said = joined(at(part, {"files"}));
    if (!is_read) said = fmt::format("missing: {}", reason.empty() ? "not captured" : reason);
    if (is_read && !reason.empty()) said += fmt::format(" ({})", reason);
    if (!is_read && at(part, {"hint"}).is_string()) said += ". " + text(part, {"hint"});
    section.fact(text(part, {"name"}), said);
  }
  section.fact("snapshots", "{} read", at(document, {"snapshots"}).size());
  for (const auto& [reason, times] : shortfalls) section.fact("", "{} of them: {}", times, reason);
}

}  // namespace

TextReport amd_join_report(const Json& document, bool is_full) {
  TextReport report{at(document, {"folder"}).is_string() ? fmt::format("weir amd join {}", text(document, {"folder"}))
                                                         : std::string("weir amd join")};
  for (const Json& verdict : at(document, {"verdicts"}))
    if (verdict.is_string()) report.open(fields::text(verdict, {}));
  if (at(document, {"clock", "warning"}).is_string()) report.open("Warning: " + text(document, {"clock", "warning"}));
  add_join_queues(report, document, is_full);
  add_creation(report, document, is_full);
  if (is_full) {
    add_streams(report, document);
    add_snapshot_series(report, document);
  }
  add_rests(report, document);
  ReportSection notes{"Notes"};
  for (const Json& note : at(document, {"notes"}))
    if (note.is_string()) notes.remark(fields::text(note, {}));
  if (!notes.remarks.empty()) report.sections.push_back(std::move(notes));
  return report;
}

DocumentText text_list::amd_join(const Json& document) { return amd_join_report(document, false); }

}  // namespace weir
