// Documents as text for people. A report (sections.h) has a text and a Markdown form; others are text for a terminal of
// 80 columns, except for longer words (paths, names). All of them read only the document: they measure nothing and
// judge nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/schemas.h"
#include "report/text/sections.h"

namespace weir {

// A report, or a text for a terminal whose first line is a title; an empty one where there is nothing to show.
using DocumentText = std::variant<TextReport, std::string>;

namespace text_list {
#define WEIR_DECLARE(name, version) DocumentText name(const Json& document);
WEIR_TEXT_DOCUMENTS(WEIR_DECLARE)
#undef WEIR_DECLARE
}  // namespace text_list

// The function of text_list for this schema, or null.
using TextFunction = DocumentText(const Json& document);
TextFunction* text_function(std::string_view schema);

// weir.result/2: what was run, the results, and caveats.
std::string describe_result(const Json& result);
// "5 processes, medians 1.02 ms to 1.05 ms (2.9 % apart)"; empty for a result of one process.
std::string processes_text(const Json& result);

inline constexpr std::size_t kSubmitWidth = 11;  // of the column of ways to submit, unless a name is longer

// The head and the rows of a sweep's table, separately, so that rows can be printed as they arrive.
std::string sweep_head(const Json& settings, std::size_t submit_width = kSubmitWidth);
// `was_kept`: the point was already in the file.
std::string sweep_row(const Json& result, bool was_kept = false, std::size_t submit_width = kSubmitWidth);
// "inline: best at 8 streams (...); 4 are enough for 95% of it. Scalability law: ...": one curve's analysis as in
// `weir.sweep/1`, with the throughput's unit. Empty where there is only one point.
std::string scaling_words(const std::string& name, const Json& analysis, const std::string& unit);
// A summary of a sweep: best point, knee, efficiency, scalability law.
std::string sweep_summary(const Json& sweep);

// weir.analysis/2. `is_full`: everything in the document; otherwise the main results, and one line for each missing
// one.
TextReport analysis_report(const Json& document, bool is_full);

// What stands out in a weir.analysis/2: the largest losses, each with its figure and advice.
struct Standout {
  double share = 0;         // of the device's span; 0 where the cost is not known
  std::string text;         // a sentence
  std::string advice;       // one or more sentences; empty where there is nothing to do
  bool is_warning = false;  // it costs much, or is why the device was idle for much of its span
};

// Why the hop to `seen` of this class of a waterfall has no share.
const char* why_seen_is_left_out(const Json& way);

// At most five, the largest share of a device's span first; for each kind, the device with the highest cost. Never
// empty where there is a device with times.
std::vector<Standout> standouts(const Json& document);
// The same as plain text, followed by advice.
std::vector<std::string> findings(const Json& document);

std::string trace_comparison_text(const Json& document);  // weir.trace_comparison/2
std::string trace_comparison_markdown(const Json& document);
std::string describe_profile(const Json& document);  // weir.profile/2

// weir.bench/2 in six sections, which are always present. `is_full`: everything; otherwise the quickest cases, and
// everything that went wrong.
TextReport bench_report(const Json& summary, bool is_full);
// One case, printed as it finishes: "softmax/cpu/fp32: ok, p50 1.23 ms".
std::string bench_line(const Json& entry);
// The output of --list (lab/kernels/plan.h).
TextReport bench_plan_report(const Json& plan);
// The block "regressions" of weir.bench/2 as one section: the verdict in a sentence, and the cases that deserve a look.
// A null block means that nothing was compared.
ReportSection regressions_section(const Json& regressions);
// regressions.md: every case, and how to read it.
TextReport regressions_report(const Json& regressions);
// One case in a line: "4.21 ms -> 5.02 ms, +19.2 % (+15.1 .. +23.0 %): slower: why".
std::string regression_line(const Json& entry);

TextReport channel_report(const Json& document);  // weir.channel/2

// One member of `devices` of weir.conformance/2: a table by group, every failure with its explanation, every reason to
// skip with its count.
std::string describe_conformance(const Json& device);
// A summary of all devices: those that could not be opened, and the verdict where there are several.
std::string conformance_summary(const Json& document);

// weir.history/2. `is_full`: all runs of a trend, not only the last ones.
TextReport history_report(const Json& document, bool is_full = false);

// weir.overlap/2: how much communication was hidden, what it cost, what blocked the rest.
TextReport overlap_report(const Json& summary);
// One row per point of a sweep: [{assignments, summary}].
TextReport overlap_sweep_report(const Json& points);
TextReport overlap_points_report(const Json& document);  // weir.overlap_sweep/1
TextReport tune_report(const Json& document);    // weir.overlap_tune/2
TextReport trials_report(const Json& document);  // weir.trials/2
TextReport race_report(const Json& document);    // weir.race/1

// weir.preempt/2. `has_published`: also print published figures, which are many lines about other machines.
TextReport preempt_report(const Json& document, bool has_published);

// weir.queues/2, by the experiment.
std::string describe_queue_map(const Json& document);
std::string describe_limits(const Json& document);
std::string describe_switch(const Json& document);
std::string describe_queue_cost(const Json& document);
std::string describe_queues_sweep(const Json& document);
std::string describe_queues_convoy(const Json& document);
std::string describe_fairness(const Json& document);

// weir.sched_status/1: clients with a seat, who is waiting for whom, what each used. `before` is an earlier status, of
// the same daemon or another: where a client was already present, its columns show what happened since then instead of
// since it connected. Null: there is none.
TextReport sched_status_report(const Json& status, const Json& before = nullptr);
// Of such a document: the MPS that clients use, and why the mechanism does less than its name says.
std::vector<std::string> mechanism_lines(const Json& status);

// weir.amd_capture/1: what a capture contains and lacks. `bytes` has the size of each part by name; `folder` is the
// name that suggested commands should use.
TextReport capture_report(const Json& manifest, const std::map<std::string, std::uint64_t>& bytes,
                          const std::string& folder);
TextReport amd_compare_report(const Json& document);            // weir.amd_compare/1
TextReport amd_roadmap_report(const Json& document);            // weir.amd_roadmap/1
TextReport amd_queues_report(const Json& document);             // weir.amd_queues/1
TextReport probe_priority_report(const Json& document);         // weir.probe_priority/1
TextReport ftrace_report(const Json& document, bool is_full);   // weir.amd_ftrace/2; full: all processes and creates
TextReport amd_hqd_report(const Json& document, bool is_full);  // weir.amd_hqd/2; full: every queue and every GPU
TextReport amd_join_report(const Json& document,
                           bool is_full);  // weir.amd_join/1; full: also other processes, and streams
TextReport amd_log_report(const Json& document, bool is_full);  // weir.amd_log/2; full: long lists are not shortened

}  // namespace weir
