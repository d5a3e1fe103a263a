// weir.amd_hqd/2: queues and slots as AMD's kernel driver shows them.
#include <fmt/format.h>

#include <map>
#include <set>
#include <string_view>

#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

constexpr std::size_t kShortList = 24;

// 1M, 4K: ring sizes are powers of two, and rows have little room.
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
  // A scale of 1 is milliseconds; no source documents another meaning.
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

// One row for each queue for which `row` returns cells.
template <class Row>
ReportTable hqd_queue_table(const Json& document, bool is_full, std::vector<ReportTable::Column> columns,
                            const Row& row) {
  ReportTable table{std::move(columns)};
  std::size_t left_out = 0;
  for (const Json& queue : at(document, {"queues"})) {
    std::vector<std::string> cells = row(queue);
    if (cells.empty()) continue;
    if (is_full || table.rows.size() < kShortList)
      table.rows.push_back(std::move(cells));
    else
      ++left_out;
  }
  if (left_out > 0) table.after = fmt::format("{} more: --full, or --json", left_out);
  return table;
}

using Cells = std::vector<std::string>;

void add_queues(TextReport& report, const Json& document, bool is_full) {
  std::map<std::string, std::size_t> quanta;
  std::size_t saved = 0;
  ReportTable table = hqd_queue_table(
      document, is_full,
      {{"GPU"}, {"process"}, {"ring"}, {"size"}, {"prio"}, {"backlog"}, {"doorbell"}, {"slots"}, {"CWSR"}},
      [&](const Json& queue) -> Cells {
        if (text(queue, {"kind"}) != "compute") return {};
        ++quanta[quantum(queue)];
        if (cwsr(queue) == "saved" || cwsr(queue) == "was") ++saved;
        return {text(queue, {"gpu_id"}), text(queue, {"pid"}), text(queue, {"ring_base"}),
                ring_size(queue),        priority(queue),      backlog(queue),
                doorbell(queue),         slots(queue),         cwsr(queue)};
      });
  std::string listed_quanta;
  for (const auto& [value, queues] : quanta)
    listed_quanta +=
        fmt::format("{}{} ({} queue{})", listed_quanta.empty() ? "" : ", ", value, queues, queues == 1 ? "" : "s");
  std::vector<std::string> remarks = {
      "Quantum: " + listed_quanta + ". It matters where queues outnumber slots.",
      "Priority: 0 to 6 low, 7 to 10 medium, 11 to 15 high. Backlog: packets of 64 bytes, written and not yet read.",
      "Slots: pipe.queue, and on how many XCCs."};
  if (saved > 0)
    remarks.emplace_back(
        "CWSR saved: waves of a kernel are in the save area now. CWSR was: they were when it last left the hardware.");
  report.add_unless_empty("Compute queues", std::move(table), std::move(remarks));
}

// One row per slot, as the registers show it.
void add_slots(TextReport& report, const Json& document) {
  ReportTable table{{{"GPU"}, {"ring"}, {"XCC"}, {"slot"}, {"VMID"}, {"read"}, {"write"}}};
  for (const Json& queue : at(document, {"queues"})) {
    if (text(queue, {"kind"}) != "compute") continue;
    for (const Json& slot : at(queue, {"slots"}))
      table.rows.push_back({text(queue, {"gpu_id"}), text(queue, {"ring_base"}), text(slot, {"xcc"}),
                            fmt::format("{}.{}", text(slot, {"pipe"}), text(slot, {"queue"})), text(slot, {"vmid"}),
                            text(slot, {"read_dword"}), text(slot, {"write_dword"})});
  }
  report.add_unless_empty("Slots in use (read and write in dwords, as the registers have them)", std::move(table));
}

void add_times(TextReport& report, const Json& document, bool is_full) {
  report.add_unless_empty(
      "Context saves and restores (last of each queue, in ticks of the GPU's clock)",
      hqd_queue_table(document, is_full, {{"GPU"}, {"process"}, {"ring"}, {"save"}, {"restore"}},
                      [](const Json& queue) -> Cells {
                        if (!number(queue, {"cwsr", "save_ticks"}) && !number(queue, {"cwsr", "restore_ticks"}))
                          return {};
                        return {text(queue, {"gpu_id"}), text(queue, {"pid"}), text(queue, {"ring_base"}),
                                text(queue, {"cwsr", "save_ticks"}), text(queue, {"cwsr", "restore_ticks"})};
                      }));
}

void add_sdma(TextReport& report, const Json& document, bool is_full) {
  report.add_unless_empty(
      "SDMA queues",
      hqd_queue_table(document, is_full,
                      {{"GPU"}, {"process"}, {"ring"}, {"size"}, {"bytes to do"}, {"doorbell"}, {"engine.RLC"}},
                      [](const Json& queue) -> Cells {
                        if (text(queue, {"kind"}) != "sdma") return {};
                        const std::string bytes = text(queue, {"backlog", "bytes"});
                        const bool is_least = at(queue, {"backlog", "is_least"}) == true && bytes != "-";
                        return {text(queue, {"gpu_id"}),
                                text(queue, {"pid"}),
                                text(queue, {"ring_base"}),
                                ring_size(queue),
                                is_least ? ">=" + bytes : bytes,
                                doorbell(queue),
                                slots(queue)};
                      }));
}

void add_gpus(TextReport& report, const Json& document, bool is_full) {
  const Json& gpus = at(document, {"gpus"});
  if (!gpus.is_array() || gpus.empty()) return;
  ReportSection& section = report.section("GPUs: slots of compute queues, all XCCs together");
  ReportTable& table = section.table({{"GPU"},
                                      {"node"},
                                      {"generation", true},
                                      {"XCCs"},
                                      {"each"},
                                      {"active"},
                                      {"stale"},
                                      {"unused"},
                                      {"SDMA"},
                                      {"stale"}});
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
  section.remark(
      "Each: slots of one XCC. Stale slots keep values of queues that were there, and count for nothing; in unused "
      "ones "
      "there was none. SDMA: rings in use, and stale ones.");
}

void add_unread(TextReport& report, const Json& document) {
  ReportSection section{"What was not read"};
  for (const Json& part : at(document, {"missing"})) {
    const std::string hint = text(part, {"hint"});
    section.remark("{} ({}): {}.{}", text(part, {"part"}), text(part, {"path"}), text(part, {"reason"}),
                   hint == "-" ? "" : " " + hint);
  }
  for (const Json& file : at(document, {"files"})) {
    for (const Json& problem : at(file, {"problems"}))
      section.remark("{}: {}.", text(file, {"name"}), problem.is_string() ? fields::text(problem, {}) : "");
    for (const Json& lines : at(file, {"unread"}))
      section.remark("{}: {} x {} (first: line {}).", text(file, {"name"}), text(lines, {"count"}),
                     text(lines, {"reason"}), text(lines, {"first_line"}));
  }
  for (const Json& problem : at(document, {"sysfs", "problems"}))
    section.remark(problem.is_string() ? fields::text(problem, {}) : "");
  if (!section.remarks.empty()) report.sections.push_back(std::move(section));
}

}  // namespace

TextReport amd_hqd_report(const Json& document, bool is_full) {
  TextReport report;
  const Json& files = at(document, {"files"});
  report.title = "weir amd hqd";
  if (files.size() == 1) report.title += " " + text(files[0], {"name"});
  if (files.size() > 1) {
    std::string kinds;
    for (const Json& file : files) kinds += (kinds.empty() ? ": " : ", ") + text(file, {"kind"});
    report.title += kinds;
  }
  for (const Json& sentence : at(document, {"verdict"})) report.open(fields::text(sentence, {}));
  add_queues(report, document, is_full);
  if (is_full) add_slots(report, document);
  add_times(report, document, is_full);
  add_sdma(report, document, is_full);
  add_gpus(report, document, is_full);
  add_unread(report, document);
  return report;
}

DocumentText text_list::amd_hqd(const Json& document) { return amd_hqd_report(document, false); }

}  // namespace weir
