// weir.amd_queues/1: the queues of a process, and how long the driver took to list, suspend and resume them.
#include <fmt/format.h>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {

using namespace fields;

TextReport amd_queues_report(const Json& document) {
  TextReport report{fmt::format("Queues of process {}", text(document, {"pid"}))};
  if (const std::string name = string(document, {"name"}); !name.empty()) report.title += fmt::format(" ({})", name);
  ReportSection& queues = report.section("Queues");
  ReportTable table{
      {{"id"}, {"gpu", true}, {"kind", true}, {"ring", true}, {"size"}, {"save area"}, {"suspended", true}}};
  const auto bytes = [](const Json& row, const char* key) {
    return format_bytes(static_cast<std::uint64_t>(number(row, {key}).value_or(0)));
  };
  for (const Json& row : list(document, {"queues"}))
    table.rows.push_back({text(row, {"queue_id"}), text(row, {"gpu_id"}), text(row, {"kind"}), text(row, {"ring"}),
                          bytes(row, "ring_bytes"), bytes(row, "save_area_bytes"),
                          is_true(row, {"was_suspended"}) ? "yes" : ""});
  if (table.rows.empty()) queues.remark("It has none.");
  queues.add_unless_empty(std::move(table));
  if (const auto changes = number(document, {"changes"}); changes && *changes > 0)
    queues.remark("Its queues changed between {:.0f} of the rounds.", *changes);

  ReportTable times{{{"call", true}, {"rounds"}, {"p50"}, {"p95"}, {"p99"}, {"max"}}};
  for (const auto& [key, name] :
       {std::pair("snapshot_ns", "list"), std::pair("suspend_ns", "suspend"), std::pair("resume_ns", "resume")}) {
    if (!at(document, {key}).is_object()) continue;
    const auto time = [&, key = key](const char* level) {
      return format_duration(number(document, {key, level}).value_or(0));
    };
    times.rows.push_back({name, text(document, {key, "samples"}), time("p50"), time("p95"), time("p99"), time("max")});
  }
  ReportSection& took = report.section("How long the driver took");
  took.add_unless_empty(std::move(times));
  if (const auto hold = number(document, {"hold_ns"}))
    took.remark(
        "Queues were suspended for {} in each round, and are resumed. Each suspend takes every queue of that GPU "
        "off the hardware for a moment, whoever owns it.",
        format_duration(*hold));
  else
    took.remark("Nothing was suspended: --suspend was not given.");
  if (is_true(document, {"is_stopped"})) took.remark("Interrupted; everything was resumed.");
  return report;
}

DocumentText text_list::amd_queues(const Json& document) { return amd_queues_report(document); }

}  // namespace weir
