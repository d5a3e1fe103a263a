// weir.probe_priority/1: whether the priority of streams does anything, by how much, and what follows.
#include <fmt/format.h>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

std::string answer_text(const Json& document) {
  const std::string answer = string(document, {"answer"});
  if (answer == "helps") {
    const auto range = interval(document, {"interval"});
    return fmt::format("Priority helps: short work ends {:.3g} times sooner{}.",
                       number(document, {"speedup"}).value_or(1),
                       range ? fmt::format(" ({:.3g} to {:.3g}, 95 %)", range->first, range->second) : "");
  }
  if (answer == "nothing") return "Priority does nothing here.";
  if (answer == "slower") return "Priority makes it worse: short work ends later on the stream of high priority.";
  return answer == "undecided" ? "It cannot be decided." : "Nothing could be measured.";
}

void add_meaning(const Json& document, ReportSection& section) {
  const std::string answer = string(document, {"answer"});
  if (answer == "helps") {
    section.remark(is_true(document, {"passes_running"})
                       ? "It passes long kernels that run already: the GPU gives it room as blocks of those end. Give "
                         "streams of urgent work a high priority; that is all the preemption that most programs need."
                       : "It passes kernels that wait in line, and waits for the one that runs. Keep kernels short, or "
                         "let the driver take them off the GPU: `weir preempt` says what this device has.");
    section.remark("Priority orders the streams of one process. Between processes: `weir sched`.");
  } else if (answer == "nothing" || answer == "slower") {
    section.remark(
        "Do not rely on priority for urgent work in this environment. What helps without it: hold launches back "
        "(`weir sched run --priority high -- PROGRAM`), or suspend the queues of others on AMD "
        "(`weir sched start --mechanism kfd_suspend`); `weir preempt` measures both.");
  }
}

std::string share_changed(const Json& document) {
  const auto range = interval(document, {"interval"});
  if (!range) return "-";
  return fmt::format("{:.3g} times sooner, {:.3g} to {:.3g} at 95 %", number(document, {"speedup"}).value_or(1),
                     range->first, range->second);
}

}  // namespace

TextReport probe_priority_report(const Json& document) {
  const Json& runtime = at(document, {"runtime"});
  TextReport report{answer_text(document)};
  if (const std::string reason = string(document, {"reason"}); !reason.empty()) report.open("{}", reason);

  ReportSection& where = report.section("Where");
  if (!string(runtime, {"device"}).empty()) where.fact("device", text(runtime, {"device"}));
  where.fact("python", text(runtime, {"python"}));
  if (!string(runtime, {"torch"}).empty())
    where.fact("torch", "{} ({} {})", text(runtime, {"torch"}), text(runtime, {"name"}), text(runtime, {"version"}));
  if (number(runtime, {"least_priority"}))
    where.fact("priorities", "{} to {}: smaller is more urgent", text(runtime, {"least_priority"}),
               text(runtime, {"greatest_priority"}));

  ReportTable waits{{{"short kernel on", true}, {"priority"}, {"samples"}, {"p50"}, {"p95"}, {"max"}}};
  for (const Json& row : list(document, {"waits"})) {
    if (number(row, {"samples"}).value_or(0) == 0) continue;
    const std::string stream = string(row, {"stream"});
    waits.rows.push_back({stream == "high"    ? "a stream of high priority"
                          : stream == "equal" ? "one like the long kernels'"
                                              : "an idle device",
                          text(row, {"priority"}), count(row, {"samples"}), duration(row, {"wait_ns", "p50"}),
                          duration(row, {"wait_ns", "p95"}), duration(row, {"wait_ns", "max"})});
  }
  if (!waits.rows.empty()) {
    ReportSection& times = report.section("From its launch to its end, behind long kernels");
    times.tables.push_back(std::move(waits));
    times.fact("long kernels", "{} each", duration(document, {"kernel_ns"}));
    times.fact("by", "{} process{}", list(document, {"processes"}).size(),
               list(document, {"processes"}).size() == 1 ? "; others may differ, so run several" : "es");
    times.fact("high priority", share_changed(document));
    if (const auto idle = number(document, {"idle"}); idle && *idle > 0)
      times.remark("{:.0f} times are left out: the long kernels had ended already.", *idle);
  }
  ReportSection meaning{"What follows"};
  add_meaning(document, meaning);
  if (!meaning.remarks.empty()) report.sections.push_back(std::move(meaning));
  return report;
}

DocumentText text_list::probe_priority(const Json& document) { return probe_priority_report(document); }

}  // namespace weir
