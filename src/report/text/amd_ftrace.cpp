// weir.amd_ftrace/2: what KFD did in a kernel trace.
#include <fmt/format.h>

#include "base/units.h"
#include "report/text/documents.h"
#include "report/text/fields.h"

namespace weir {
namespace {

using namespace fields;

std::string ftrace_reason(const Json& document, const char* path) {
  const std::string words = text(at(document, {"unavailable"}), {path});
  return words == "-" ? "not known" : "not known: " + words;
}

std::string with_commas(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
  return all;
}

// A short label for each question of the document; the document's own text for questions that this report does not
// know.
std::string label_of(const Json& answer) {
  static constexpr std::pair<const char*, const char*> kLabels[] = {
      {"how_is_a_queue_asked_for", "asking for a queue"},   {"how_long_does_kfd_take", "creating it takes"},
      {"doorbell_or_ioctl_per_launch", "ioctl per launch"}, {"where_is_the_mqd_allocated", "its MQD"},
      {"is_a_kernel_queue_used", "kernel queues (KCQ)"},    {"how_long_does_preemption_take", "preemption takes"}};
  const std::string key = text(answer, {"key"});
  for (const auto& [known, label] : kLabels)
    if (key == known) return label;
  return text(answer, {"question"});
}

ReportSection answer_section(const Json& document) {
  ReportSection section{"Answers"};
  for (const Json& one : at(document, {"answers"})) {
    const std::string words = text(one, {"answer"});
    section.fact(label_of(one), words == "-" ? "not answered: " + text(one, {"reason"}) : words);
  }
  return section;
}

ReportSection trace_section(const Json& document) {
  ReportSection section{"The trace"};
  const Json& trace = at(document, {"trace"});
  std::vector<std::string> forms;
  for (const auto& [name, lines] : fields::members(at(trace, {"forms"})))
    if (lines.is_number() && lines > 0) forms.push_back(fmt::format("{} {}", fields::text(lines, {}), name));
  section.fact("entries", with_commas(forms));
  const std::string tracer = text(trace, {"tracer"});
  section.fact("tracer", tracer == "-" ? ftrace_reason(document, "trace.tracer") : tracer);
  section.fact("length", number(trace, {"length_ns"}) ? duration(trace, {"length_ns"})
                                                      : ftrace_reason(document, "trace.length_ns"));
  const std::string clock = text(trace, {"clock"});
  section.fact("clock", clock == "-" ? ftrace_reason(document, "trace.clock") : clock);
  if (number(trace, {"resolution_ns"})) section.fact("stamps", "rounded to " + duration(trace, {"resolution_ns"}));
  const std::string overwritten = count(trace, {"lost", "overwritten"});
  section.fact("lost", "{} events in {} gaps; overwritten: {}", count(trace, {"lost", "events"}),
               count(trace, {"lost", "gaps"}),
               overwritten == "-" ? ftrace_reason(document, "trace.lost.overwritten") : overwritten);
  for (const Json& unread : at(trace, {"unread"}))
    section.fact("unread", "{} lines, {} (first: line {})", count(unread, {"lines"}), text(unread, {"reason"}),
                 count(unread, {"first_line"}));
  return section;
}

// One row per kind of length: known lengths and bounds never share a row.
// `owner` is the text of the first column, in tables that have it; those have no room for p90.
void add_rows(ReportTable& table, const Json& verb, const std::string* owner) {
  bool is_first = true;
  const auto add = [&](const char* kind, const Json& tally) {
    std::vector<std::string> row;
    if (owner) row.push_back(is_first ? *owner : "");
    row.insert(row.end(), {is_first ? text(verb, {"verb"}) : "", is_first ? count(verb, {"calls"}) : "", kind,
                           count(tally, {"count"}), duration(tally, {"min"}), duration(tally, {"p50"}),
                           duration(tally, {"p99"}), duration(tally, {"max"})});
    if (!owner) row.insert(row.begin() + 6, duration(tally, {"p90"}));
    table.rows.push_back(std::move(row));
    is_first = false;
  };
  for (const char* kind : {"exact_ns", "at_least_ns", "at_most_ns"})
    if (const Json& tally = at(verb, {kind}); tally.is_object())
      add(kind[0] == 'e' ? "exact" : kind[3] == 'l' ? "at least" : "at most", tally);
  if (is_first) add("-", Json());
}

ReportSection verb_section(const Json& document) {
  ReportSection section{"What KFD did"};
  ReportTable table{{{"call", true}, {"calls"}, {"length", true}, {"n"}, {"min"}, {"p50"}, {"p90"}, {"p99"}, {"max"}}};
  for (const Json& verb : at(document, {"verbs"})) add_rows(table, verb, nullptr);
  if (table.rows.empty()) {
    section.remark("No call that makes, changes or moves a queue is in the trace.");
    return section;
  }
  section.tables.push_back(std::move(table));
  for (const Json& verb : at(document, {"verbs"})) {
    if (number(verb, {"failed"}).value_or(0) > 0)
      section.remark("{} of {} {} calls failed: no length counts them.", count(verb, {"failed"}),
                     count(verb, {"calls"}), text(verb, {"verb"}));
    if (number(verb, {"length_unknown"}).value_or(0) > 0)
      section.remark("{} of {} {} calls have no length: only their entries were seen.", count(verb, {"length_unknown"}),
                     count(verb, {"calls"}), text(verb, {"verb"}));
  }
  section.remark("preempt: from unmap until the fence, in which the hardware lets go of its queues.");
  return section;
}

ReportSection process_section(const Json& document, bool is_full) {
  ReportSection section{"By process"};
  ReportTable& table = section.table(
      {{"process", true}, {"call", true}, {"calls"}, {"length", true}, {"n"}, {"min"}, {"p50"}, {"p99"}, {"max"}});
  const std::size_t most = is_full ? SIZE_MAX : 6;
  bool has_threads = false;
  const Json& processes = at(document, {"processes"});
  for (const Json& process : first(processes, most)) {
    const std::string id = text(process, {"process"}), thread = text(process, {"thread"});
    has_threads = has_threads || thread != "-";
    std::string owner = id != "-" ? id : thread != "-" ? "thread " + thread : "not known";
    if (at(process, {"is_rest"}) == true) owner = "the rest";
    for (const Json& verb : at(process, {"verbs"})) {
      add_rows(table, verb, &owner);
      owner.clear();
    }
  }
  if (processes.size() > most) table.after = fmt::format("{} more: --full", processes.size() - most);
  if (has_threads)
    section.remark(
        "Threads whose process is not in the text: echo 1 > options/record-tgid (function_graph prints none).");
  return section;
}

std::string hexadecimal(const Json& json, const char* key) {
  const Json& value = at(json, {key});
  return value.is_number_integer() && value >= 0 ? fmt::format("{:#x}", value.get<std::uint64_t>()) : "-";
}

std::string length_of(const Json& create) {
  const std::string known = duration(create, {"duration_ns"}), most = duration(create, {"longest_ns"});
  if (text(create, {"end"}) == "exact") return known;
  if (known != "-" && most != "-") return known + " .. " + most;
  if (known != "-") return ">= " + known;
  return most != "-" ? "<= " + most : "-";
}

ReportSection create_section(const Json& document, bool is_full) {
  ReportSection section;
  const Json& creates = at(document, {"creates"});
  section.title = "Creates";
  ReportTable& table =
      section.table({{"line"}, {"thread"}, {"queue"}, {"gpu"}, {"doorbell"}, {"ring"}, {"result"}, {"took", true}});
  const std::size_t most = is_full ? SIZE_MAX : 10;
  for (const Json& create : first(creates, most)) {
    const auto result = number(create, {"result"});
    table.rows.push_back({count(create, {"line"}), text(create, {"thread"}), text(create, {"queue_id"}),
                          hexadecimal(create, "gpu_id"), hexadecimal(create, "doorbell"),
                          hexadecimal(create, "ring_base"),
                          !result        ? "?"
                          : *result == 0 ? "ok"
                                         : fmt::format("{:.0f}", *result),
                          length_of(create)});
  }
  if (creates.size() > most) table.after = fmt::format("{} more: --full", creates.size() - most);
  section.remark(
      "result: ok, the error of a create that failed and made no queue, or ? where no return value was traced.");
  return section;
}

ReportSection rest_section(const Json& document) {
  ReportSection section{"Runlists, doorbells, ioctls"};
  const Json& runlist = at(document, {"runlist"});
  section.fact("runlists", number(runlist, {"rebuilds"})
                               ? fmt::format("{} rebuilds, {} a second (by {})", count(runlist, {"rebuilds"}),
                                             number(runlist, {"rebuilds_per_s"})
                                                 ? format_quantity(*number(runlist, {"rebuilds_per_s"}))
                                                 : "-",
                                             text(runlist, {"basis"}))
                               : ftrace_reason(document, "runlist.rebuilds_per_s"));
  const Json& doorbells = at(document, {"doorbells"});
  section.fact("doorbells", "{} allocated, {} mapped, {} writes by the kernel; writes by programs: {}",
               count(doorbells, {"allocations"}), count(doorbells, {"mmaps"}), count(doorbells, {"kernel_writes"}),
               ftrace_reason(document, "doorbells.user_writes"));
  std::vector<std::string> ioctls;
  for (const Json& one : at(document, {"ioctls", "by_name"}))
    if (ioctls.size() < 8) ioctls.push_back(fmt::format("{} {}", text(one, {"name"}), count(one, {"calls"})));
  section.fact("ioctls", ioctls.empty() ? "the trace names none" : with_commas(ioctls));
  std::vector<std::string> others;
  for (const Json& one : at(document, {"other_calls", "kfd_without_role_names"}))
    if (others.size() < 4) others.push_back(fmt::format("{} {}", text(one, {"name"}), count(one, {"calls"})));
  if (!others.empty())
    section.fact("other KFD", "{} calls: {}{}", count(document, {"other_calls", "kfd_without_role"}),
                 with_commas(others), others.size() == 4 ? ", ..." : "");
  return section;
}

}  // namespace

TextReport ftrace_report(const Json& document, bool is_full) {
  TextReport report{"weir amd ftrace: " + text(document, {"file"})};
  for (const Json& warning : at(document, {"warnings"}))
    report.open("Note: {}. {}", text(warning, {"text"}), text(warning, {"advice"}));
  report.sections.push_back(answer_section(document));
  report.sections.push_back(verb_section(document));
  if (!at(document, {"processes"}).empty()) report.sections.push_back(process_section(document, is_full));
  if (!at(document, {"creates"}).empty()) report.sections.push_back(create_section(document, is_full));
  report.sections.push_back(rest_section(document));
  report.sections.push_back(trace_section(document));
  return report;
}

DocumentText text_list::amd_ftrace(const Json& document) { return ftrace_report(document, false); }

}  // namespace weir
