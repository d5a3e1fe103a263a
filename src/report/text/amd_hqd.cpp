#include "report/text/amd_hqd.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string_view>

#include "report/text/fields.h"
#include "report/text/sections.h"

namespace weir {
namespace {

using fields::at;
using fields::number;
using fields::text;

constexpr std::size_t kShortList = 24;

// 1M, 4K: rings are powers of two, and a row is short of room.
std::string ring_size(const Json& queue) {
  const auto bytes = number(queue, {"ring_bytes"});
  if (!bytes) return "-";
  auto value = static_cast<std::uint64_t>(*bytes);
  std::size_t unit = 0;
  for (; unit < 3 && value >= 1024 && value % 1024 == 0; ++unit) value /= 1024;
  return fmt::format("{}{}", value, std::string_view("BKMG")[unit]);
}

std::string priority(const Json& queue) { return text(queue, {"queue_priority"}); }

std::string quantum(const Json& queue) {
  const Json& value = at(queue, {"quantum"});
  if (!value.is_object()) return "-";
  if (value.value("is_enabled", false) == false) return "off";
  // The scale's one meaning that sources name is a millisecond.
  return value.value("scale", 0) == 1
             ? fmt::format("{} ms", value.value("duration", 0))
             : fmt::format("{} of scale {}", value.value("duration", 0), value.value("scale", 0));
}

std::string backlog(const Json& queue) {
  const auto packets = number(queue, {"backlog", "packets"});
  if (!packets) return "-";
  return fmt::format("{}{}", at(queue, {"backlog", "is_least"}) == true ? ">=" : "", *packets);
}

std::string doorbell(const Json& queue) {
  const auto index = number(queue, {"doorbell", "index"});
  return index ? fmt::format("0x{:x}", static_cast<std::uint64_t>(*index)) : "-";
}

// pipe.queue, and on how many XCCs.
std::string slots(const Json& queue) {
  const Json& list = at(queue, {"slots"});
  if (at(queue, {"is_active"}).is_null()) return "-";
  if (!list.is_array() || list.empty()) return "none";
  std::set<std::string> places;
  for (const Json& slot : list)
    places.insert(slot.contains("engine") ? fmt::format("{}.{}", text(slot, {"engine"}), text(slot, {"rlc"}))
                                          : fmt::format("{}.{}", text(slot, {"pipe"}), text(slot, {"queue"})));
  const std::string place = places.size() == 1 ? *places.begin() : "mixed";
  return list.size() == 1 ? place : fmt::format("{} x{}", place, list.size());
}

std::string cwsr(const Json& queue) {
  const Json& is_on = at(queue, {"cwsr", "is_on"});
  if (!is_on.is_boolean()) return "-";
  if (is_on == false) return "off";
  if (at(queue, {"cwsr", "was_preempted"}) != true) return "on";
  return at(queue, {"is_active"}) == false ? "saved" : "was";
}

void add_queues(Report& report, const Json& document, bool is_full) {
  ReportSection section;
  section.title = "Compute queues";
  ReportTable table;
  table.columns = {{"GPU"}, {"process"}, {"ring"}, {"size"}, {"prio"}, {"backlog"}, {"doorbell"}, {"slots"}, {"CWSR"}};
  std::map<std::string, std::size_t> quanta;
  std::size_t count = 0, saved = 0;
  for (const Json& queue : at(document, {"queues"})) {
    if (text(queue, {"kind"}) != "compute") continue;
    ++quanta[quantum(queue)];
    if (cwsr(queue) == "saved" || cwsr(queue) == "was") ++saved;
    if (++count > kShortList && !is_full) continue;
    table.rows.push_back({text(queue, {"gpu_id"}), text(queue, {"pid"}), text(queue, {"ring_base"}), ring_size(queue),
                          priority(queue), backlog(queue), doorbell(queue), slots(queue), cwsr(queue)});
  }
  if (count == 0) return;
  if (table.rows.size() < count)
    table.after = fmt::format("{} more: --full, or --report json", count - table.rows.size());
  section.tables.push_back(std::move(table));
  std::string told;
  for (const auto& [value, queues] : quanta)
    told += fmt::format("{}{} ({} queue{})", told.empty() ? "" : ", ", value, queues, queues == 1 ? "" : "s");
  section.remarks.push_back("Quantum: " + told + ". It matters where queues outnumber slots.");
  section.remarks.push_back(
      "Priority: 0 to 6 low, 7 to 10 medium, 11 to 15 high. Backlog: packets of 64 bytes, written and not yet read.");
  section.remarks.push_back("Slots: pipe.queue, and on how many XCCs.");
  if (saved > 0)
    section.remarks.push_back(
        "CWSR saved: waves of a kernel are in the save area now. CWSR was: they were when it last left the hardware.");
  report.sections.push_back(std::move(section));
}

// One row per slot: what the registers themselves say.
void add_slots(Report& report, const Json& document) {
  ReportSection section;
  section.title = "Slots in use (read and write in dwords, as the registers have them)";
  ReportTable table;
  table.columns = {{"GPU"}, {"ring"}, {"XCC"}, {"slot"}, {"VMID"}, {"read"}, {"write"}};
  for (const Json& queue : at(document, {"queues"})) {
    if (text(queue, {"kind"}) != "compute") continue;
    for (const Json& slot : at(queue, {"slots"}))
      table.rows.push_back({text(queue, {"gpu_id"}), text(queue, {"ring_base"}), text(slot, {"xcc"}),
                            fmt::format("{}.{}", text(slot, {"pipe"}), text(slot, {"queue"})), text(slot, {"vmid"}),
                            text(slot, {"read_dword"}), text(slot, {"write_dword"})});
  }
  if (table.rows.empty()) return;
  section.tables.push_back(std::move(table));
  report.sections.push_back(std::move(section));
}

void add_times(Report& report, const Json& document, bool is_full) {
  ReportSection section;
  section.title = "Context saves and restores (last of each queue, in ticks of the GPU's clock)";
  ReportTable table;
  table.columns = {{"GPU"}, {"process"}, {"ring"}, {"save"}, {"restore"}};
  std::size_t count = 0;
  for (const Json& queue : at(document, {"queues"})) {
    if (!number(queue, {"cwsr", "save_ticks"}) && !number(queue, {"cwsr", "restore_ticks"})) continue;
    if (++count > kShortList && !is_full) continue;
    table.rows.push_back({text(queue, {"gpu_id"}), text(queue, {"pid"}), text(queue, {"ring_base"}),
                          text(queue, {"cwsr", "save_ticks"}), text(queue, {"cwsr", "restore_ticks"})});
  }
  if (count == 0) return;
  if (table.rows.size() < count)
    table.after = fmt::format("{} more: --full, or --report json", count - table.rows.size());
  section.tables.push_back(std::move(table));
  report.sections.push_back(std::move(section));
}

void add_sdma(Report& report, const Json& document, bool is_full) {
  ReportSection section;
  section.title = "SDMA queues";
  ReportTable table;
  table.columns = {{"GPU"}, {"process"}, {"ring"}, {"size"}, {"bytes to do"}, {"doorbell"}, {"engine.RLC"}};
  std::size_t count = 0;
  for (const Json& queue : at(document, {"queues"})) {
    if (text(queue, {"kind"}) != "sdma") continue;
    if (++count > kShortList && !is_full) continue;
    const std::string bytes = text(queue, {"backlog", "bytes"});
    table.rows.push_back({text(queue, {"gpu_id"}), text(queue, {"pid"}), text(queue, {"ring_base"}), ring_size(queue),
                          at(queue, {"backlog", "is_least"}) == true && bytes != "-" ? ">=" + bytes : bytes,
                          doorbell(queue), slots(queue)});
  }
  if (count == 0) return;
  if (table.rows.size() < count)
    table.after = fmt::format("{} more: --full, or --report json", count - table.rows.size());
  section.tables.push_back(std::move(table));
  report.sections.push_back(std::move(section));
}

void add_gpus(Report& report, const Json& document, bool is_full) {
  const Json& gpus = at(document, {"gpus"});
  if (!gpus.is_array() || gpus.empty()) return;
  ReportSection section;
  section.title = "GPUs: slots of compute queues, all XCCs together";
  ReportTable table;
  table.columns = {{"GPU"},    {"node"},  {"generation", true}, {"XCCs"}, {"each"},
                   {"active"}, {"stale"}, {"unused"},           {"SDMA"}, {"stale"}};
  std::size_t left_out = 0;
  for (const Json& gpu : gpus) {
    const bool is_idle = number(gpu, {"slots", "active"}) == 0 && number(gpu, {"slots", "stale"}) == 0 &&
                         number(gpu, {"queues"}).value_or(0) == 0;
    if ((is_idle || table.rows.size() >= kShortList) && !is_full && gpus.size() > 1) {
      ++left_out;
      continue;
    }
    table.rows.push_back({text(gpu, {"gpu_id"}), text(gpu, {"node"}), text(gpu, {"generation"}), text(gpu, {"xccs"}),
                          text(gpu, {"slots", "per_xcc"}), text(gpu, {"slots", "active"}),
                          text(gpu, {"slots", "stale"}), text(gpu, {"slots", "unused"}), text(gpu, {"sdma", "active"}),
                          text(gpu, {"sdma", "stale"})});
  }
  if (left_out > 0) table.after = fmt::format("{} more without queues: --full", left_out);
  section.tables.push_back(std::move(table));
  section.remarks.push_back(
      "Each: slots of one XCC. Stale slots keep values of queues that were there, and count for nothing; in unused "
      "ones "
      "there was none. SDMA: rings in use, and stale ones.");
  report.sections.push_back(std::move(section));
}

void add_unread(Report& report, const Json& document) {
  ReportSection section;
  section.title = "What was not read";
  for (const Json& part : at(document, {"missing"})) {
    const std::string hint = text(part, {"hint"});
    section.remarks.push_back(fmt::format("{} ({}): {}.{}", text(part, {"part"}), text(part, {"path"}),
                                          text(part, {"reason"}), hint == "-" ? "" : " " + hint));
  }
  for (const Json& file : at(document, {"files"})) {
    for (const Json& problem : at(file, {"problems"}))
      section.remarks.push_back(
          fmt::format("{}: {}.", text(file, {"name"}), problem.is_string() ? problem.get<std::string>() : ""));
    for (const Json& lines : at(file, {"unread"}))
      section.remarks.push_back(fmt::format("{}: {} x {} (first: line {}).", text(file, {"name"}),
                                            text(lines, {"count"}), text(lines, {"reason"}),
                                            text(lines, {"first_line"})));
  }
  for (const Json& problem : at(document, {"sysfs", "problems"}))
    section.remarks.push_back(problem.is_string() ? problem.get<std::string>() : "");
  if (!section.remarks.empty()) report.sections.push_back(std::move(section));
}

Report make_report(const Json& document, bool is_full) {
  Report report;
  const Json& files = at(document, {"files"});
  report.title = "weir amd hqd";
  if (files.size() == 1) report.title += " " + text(files[0], {"name"});
  if (files.size() > 1) {
    std::string kinds;
    for (const Json& file : files) kinds += (kinds.empty() ? ": " : ", ") + text(file, {"kind"});
    report.title += kinds;
  }
  for (const Json& sentence : at(document, {"verdict"}))
    report.opening.push_back(sentence.is_string() ? sentence.get<std::string>() : sentence.dump());
  add_queues(report, document, is_full);
  if (is_full) add_slots(report, document);
  add_times(report, document, is_full);
  add_sdma(report, document, is_full);
  add_gpus(report, document, is_full);
  add_unread(report, document);
  return report;
}

}  // namespace

Report amd_hqd_report(const Json& document, bool is_full) { return make_report(document, is_full); }

std::string amd_hqd_text(const Json& document, bool is_full) { return report_text(make_report(document, is_full)); }

std::string amd_hqd_markdown(const Json& document, bool is_full) {
  return report_markdown(make_report(document, is_full));
}

}  // namespace weir
