// Documents for people. A report (sections.h) has a text and a Markdown form; what has a layout of its own is text for
// a terminal of 80 columns, apart from words (paths, names) that are longer themselves. All of them read the document
// alone: they measure nothing and judge nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// weir.result/1: what was run, what came out, what to be careful about.
std::string describe_result(const Json& result);

inline constexpr std::size_t kSubmitWidth = 11;  // of the column of ways to submit, where none has a longer name

// The head and the rows of a sweep's table, apart, so that rows can be printed as they come.
std::string sweep_head(const Json& settings, std::size_t submit_width = kSubmitWidth);
// `was_kept`: the point was in the file before.
std::string sweep_row(const Json& result, bool was_kept = false, std::size_t submit_width = kSubmitWidth);
// "inline: best at 8 streams (...); 4 are enough for 95% of it. Scalability law: ...": one curve's analysis, as
// `weir.sweep/1` has it, with the throughput's unit. Empty where there is one point.
std::string scaling_words(const std::string& name, const Json& analysis, const std::string& unit);
// What a sweep shows as a whole: best point, knee, efficiency, scalability law.
std::string sweep_summary(const Json& sweep);

// weir.analysis/1. `is_full`: everything in the document; otherwise what decides, and what it lacks in one line each.
Report analysis_report(const Json& document, bool is_full);

// What stands out in a weir.analysis/1: the largest losses, each with its figure and what to do about it.
struct Standout {
  double share = 0;    // of the device's span; 0 where the cost is not known
  std::string text;    // a sentence
  std::string advice;  // one or more; empty where there is nothing to do
};
// At most five, the largest share of a device's span first; of each kind the device that it costs most. Never empty
// where there is a device with times.
std::vector<Standout> standouts(const Json& document);
// The same as plain text, advice after it.
std::vector<std::string> findings(const Json& document);

std::string trace_comparison_text(const Json& document);  // weir.trace_comparison/1
std::string trace_comparison_markdown(const Json& document);
std::string describe_profile(const Json& document);  // weir.profile/1

// weir.bench/1 in six sections, whatever happened. `is_full`: everything; otherwise the quickest cases, and everything
// that went wrong.
Report bench_report(const Json& summary, bool is_full);
// One case, as it comes: "softmax/cpu/fp32: ok, p50 1.23 ms".
std::string bench_line(const Json& entry);
// What --list shows (cli/bench_plan.h).
Report bench_plan_report(const Json& plan);
// The block "regressions" of weir.bench/1 as one section: the verdict in a sentence, and the cases that deserve a look.
// A null block says that nothing was compared.
ReportSection regressions_section(const Json& regressions);
// regressions.md: every case, and how to read it.
Report regressions_report(const Json& regressions);
// One case in a line: "4.21 ms -> 5.02 ms, +19.2 % (+15.1 .. +23.0 %): slower: why".
std::string regression_line(const Json& entry);

Report channel_report(const Json& document);  // weir.channel/1

// One member of `devices` of weir.conformance/1: a table by group, every failure with its explanation, every reason to
// skip with its count.
std::string describe_conformance(const Json& device);
// What is to be said about all devices together: those that could not be opened, and the verdict where there are
// several.
std::string conformance_summary(const Json& document);

// weir.history/1. `is_full`: all runs of a trend, not only the last ones.
Report history_report(const Json& document, bool is_full = false);

// weir.overlap/1: how much communication was hidden, what it cost, what blocked the rest.
Report overlap_report(const Json& summary);
// One row per point of a sweep: [{assignments, summary}].
Report overlap_sweep_report(const Json& points);
Report tune_report(const Json& document);  // weir.overlap_tune/1

// weir.preempt/1. `has_published`: also figures that others published, which are many lines about another machine.
Report preempt_report(const Json& document, bool has_published);

// weir.queues/1, by the experiment.
std::string describe_queue_map(const Json& document);
std::string describe_limits(const Json& document);
std::string describe_switch(const Json& document);
std::string describe_queue_cost(const Json& document);
std::string describe_queues_sweep(const Json& document);
std::string describe_queues_convoy(const Json& document);
std::string describe_fairness(const Json& document);

// weir.sched_status/1: who has a seat, who waits for whom, what each used. `before`: an earlier status, of the same
// daemon or another: where a client was there already, its columns say what happened since then instead of since it
// came. Null: there is none.
Report sched_status_report(const Json& status, const Json& before = nullptr);

// weir.amd_capture/1: what a capture has and lacks. `bytes`: of each part, by its name; `folder`: as commands that come
// next should name it.
Report capture_report(const Json& manifest, const std::map<std::string, std::uint64_t>& bytes,
                      const std::string& folder);
Report amd_compare_report(const Json& document);             // weir.amd_compare/1
Report ftrace_report(const Json& document, bool is_full);    // weir.amd_ftrace/1; all processes and creates
Report amd_hqd_report(const Json& document, bool is_full);   // weir.amd_hqd/1; every queue and every GPU
Report amd_join_report(const Json& document, bool is_full);  // weir.amd_join/1; also other processes, and streams
Report amd_log_report(const Json& document, bool is_full);   // weir.amd_log/1; long lists are not cut

}  // namespace weir
