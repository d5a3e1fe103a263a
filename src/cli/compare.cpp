// weir compare: recognises what it is given, compares it by the rules for that, and turns the verdict into the exit
// code.
#include "run/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "amd/compare/case_document.h"
#include "amd/compare/case_load.h"
#include "base/error.h"
#include "base/file.h"
#include "base/schemas.h"
#include "cli/compare_flags.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/state_folder.h"
#include "cli/trace_flags.h"
#include "lab/channels/channel_baseline.h"
#include "lab/channels/channel_document.h"
#include "lab/kernels/regression.h"
#include "lab/overlap/overlap_compare.h"
#include "report/figures/judgement.h"
#include "report/history/intake.h"
#include "report/history/store.h"
#include "report/text/documents.h"
#include "run/known_spread.h"
#include "run/load.h"
#include "trace/import/byte_source.h"
#include "trace/import/import.h"
#include "trace/import/importer.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

struct CompareCommandFlags {
  std::string baseline;
  std::vector<std::string> tests;
  std::string calibration, history;
  CompareFlags compare;
  TraceFlags trace;
  bool is_by_queues = false;

  void add_to(CommandSyntax syntax) {
    syntax
        .add("baseline PATH", baseline,
             "what to compare with: a result, a sweep or a folder of them, a trace, a folder of `weir overlap` or "
             "`weir bench`, a document of `weir channel`, a folder of `weir amd capture` or a runtime log "
             "(-: standard input)")
        .required();
    syntax.add("test PATH", tests, "what to judge, of the same kind; of results and sweeps one or more")
        .required()
        .takes_several();
    syntax.add("--calibration PATH", calibration,
               "what `weir calibrate` wrote, for results of one process (default: this machine's)");
    syntax.add("--history PATH", history, "a history whose runs show how much processes differ (weir history)");
    trace.add_to(syntax);
    syntax.add(
        "--operators", trace.has_operations,
        "of two traces of PyTorch: also compare operators by their shapes (new, gone, slower, in other kernels)");
    syntax.add("--queues", is_by_queues,
               "of two programs (traces, captures, logs): their hardware queues, and which preemption would fit; "
               "the first is the urgent one");
    compare.add_to(syntax);
  }
};

// The spread between runs of the same step on the same machine, from a history. Those of the calibration come first:
// nothing else changed between its processes.
FindSpread known_spreads(const CompareCommandFlags& flags) {
  std::error_code ignored;
  if (!flags.calibration.empty() && !std::filesystem::exists(flags.calibration, ignored))
    reject(fmt::format("--calibration {}: there is no such file", flags.calibration),
           "`weir calibrate --output FILE` writes one.");
  const std::vector<CalibratedStep> steps =
      load_calibration(flags.calibration.empty() ? calibration_file() : std::filesystem::path(flags.calibration));
  std::shared_ptr<history::Store> store;
  if (!flags.history.empty()) store = std::make_shared<history::Store>(flags.history, history::DatabaseAccess::read);
  return [steps, store](const ResultPoint& baseline, const ResultPoint& test) -> std::optional<Spread> {
    if (auto spread = find_spread(steps, baseline, test)) return spread;
    const std::string machine = history::machine_of(baseline).id;
    if (machine != history::machine_of(test).id) return std::nullopt;
    if (store == nullptr || store->machines(machine).empty()) return std::nullopt;
    std::vector<double> medians;
    history::PointFilter of_machine;
    of_machine.machine = machine;
    const auto workload = baseline.key.find("workload");
    if (workload != baseline.key.end()) of_machine.workload = workload->second;
    for (const history::Point& run : store->points(of_machine))
      if (run.key == baseline.key && run.failure.empty())
        if (const auto& middle = run.latency.median ? run.latency.median : run.throughput.median)
          medians.push_back(*middle);
    return spread_of_runs(medians, fmt::format("{} runs in {}", medians.size(), store->name()));
  };
}

int compare_result_files(const CompareCommandFlags& flags, const CompareOptions& options) {
  const ResultFile baseline = load_results(flags.baseline);
  std::vector<ResultFile> tests;
  for (const std::string& test : flags.tests) tests.push_back(load_results(test));
  return flags.compare.print(compare_results(baseline, tests, options, known_spreads(flags)), "weir compare");
}

int compare_overlap_folders(const CompareCommandFlags& flags, const CompareOptions& options) {
  return flags.compare.print(compare_overlap(load_overlap(flags.baseline), load_overlap(flags.tests[0]), options),
                             "weir compare");
}

int compare_trace_files(const CompareCommandFlags& flags, const CompareOptions& options) {
  const auto window = window_named(flags.trace.window);
  ProgressLine line(flags.compare.document.is_quiet);
  std::vector<ImportedTrace> sides;
  for (const std::string& path : {flags.baseline, flags.tests[0]}) {
    line.show("reading", static_cast<int>(sides.size()), 2);
    std::vector<ImportedTrace> traces = import_traces({path}, flags.trace.import_options());
    if (traces.size() != 1) reject(fmt::format("{}: holds {} traces", path, traces.size()), "Name one of them.");
    sides.push_back(std::move(traces[0]));
  }
  line.clear();
  return print_trace_comparison(sides[0], sides[1], window, options, flags.compare.is_strict, flags.compare.document);
}

// The summary of the second, with the comparison in it.
int compare_bench_folders(const CompareCommandFlags& flags, const CompareOptions& options) {
  const auto summary_of = [](const std::string& path) {
    std::error_code ignored;
    return read_json(fs::is_directory(path, ignored) ? fs::path(path) / "summary.json" : fs::path(path));
  };
  bench::RegressionOptions limits;
  limits.latency = options.threshold;
  Json summary = summary_of(flags.tests[0]);
  summary["regressions"] = bench::compare_summaries(summary_of(flags.baseline), summary, flags.baseline, limits);
  const Json& regressions = summary["regressions"];
  flags.compare.document.print(summary, regressions_report(regressions));
  const bool is_unclear = flags.compare.is_strict && regressions["verdict"] == "ambiguous";
  const int code = bench::exit_code(regressions);
  flags.compare.ci.report(
      judge_bench(summary, flags.compare.is_strict, code),
      [&](std::size_t most) { return github_excerpt(report_markdown(regressions_report(regressions)), most); },
      flags.compare.document.is_forced);
  return code == 0 && is_unclear ? 4 : code;
}

int compare_channel_documents(const CompareCommandFlags& flags, const CompareOptions& options) {
  ChannelReport report;
  report.run = load_channel_run(flags.tests[0]);
  report.capacity_asked = report.run.settings.conditions.capacity;
  report.comparison = compare_channels(load_channel_run(flags.baseline), flags.baseline, report.run, options);
  const Json document = channel_document(report, run_context());
  flags.compare.document.print(document, channel_report(document));
  const int code = exit_code(*report.comparison, flags.compare.is_strict);
  flags.compare.ci.report(
      judge_channel(document, "weir compare", flags.compare.is_strict, code),
      [&](std::size_t most) { return github_excerpt(report_markdown(channel_report(document)), most); },
      flags.compare.document.is_forced);
  return code;
}

int compare_amd_captures(const CompareCommandFlags& flags, const CompareOptions&) {
  amd::CaseLoadOptions options;
  options.stop = &catch_interrupts();
  options.import = flags.trace.import_options();
  ProgressLine line(flags.compare.document.is_quiet);
  line.show("reading", 0, 2);
  const amd::CaseSide baseline = amd::load_case(flags.baseline, options);
  line.show("reading", 1, 2);
  const Json document = amd::case_comparison(baseline, amd::load_case(flags.tests[0], options));
  if (options.stop->load(std::memory_order_relaxed)) throw Interrupted{};
  line.clear();
  flags.compare.document.print(document, amd_compare_report(document));
  return 0;
}

struct CompareKind {
  const char* name;
  int (*judge)(const CompareCommandFlags&, const CompareOptions&);
  bool operator==(const CompareKind& other) const { return judge == other.judge; }
};
constexpr CompareKind kResults{"a result", compare_result_files}, kOther{"no result", compare_result_files},
    kFolder{"a folder of results", compare_result_files}, kTraces{"a trace", compare_trace_files},
    kOverlap{"a run of `weir overlap`", compare_overlap_folders},
    kBench{"a run of `weir bench`", compare_bench_folders},
    kChannels{"a run of `weir channel`", compare_channel_documents},
    kAmd{"a capture or a log of an AMD GPU", compare_amd_captures};

CompareKind kind_of_schema(std::string_view schema) {
  const auto is = [&](std::string_view kind) { return schemas::are_alike(schema, kind); };
  return is(schemas::bench)                          ? kBench
         : is(schemas::overlap)                      ? kOverlap
         : is(schemas::channel)                      ? kChannels
         : is(schemas::amd_log)                      ? kAmd
         : is(schemas::result) || is(schemas::sweep) ? kResults
                                                     : kOther;
}

// The comparison for what lies there. What cannot be recognised is for the comparison of results, which says what it
// takes.
CompareKind kind_of(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (fs::exists(path / "manifest.json", ignored)) return kAmd;
    if (fs::exists(path / "summary.json", ignored))
      return kind_of_schema(schemas::at_start(start_of_file(path / "summary.json", 4096)));
    for (const auto& below : fs::directory_iterator(path, ignored))
      if (fs::exists(below.path() / "summary.json", ignored)) return kOverlap;  // of a sweep
    return kFolder;
  }
  if (!fs::is_regular_file(path, ignored)) return kResults;
  const std::unique_ptr<ByteSource> bytes = open_bytes(path);
  const std::string_view start = bytes->peek(kSniffBytes);
  if (const std::string_view schema = schemas::at_start(start); !schema.empty()) return kind_of_schema(schema);
  if (looks_like_trace(start)) return kTraces;
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && (start[first] == '{' || start[first] == '[');
  return is_json || start.empty() ? kResults : kAmd;
}

int execute_compare(CompareCommandFlags flags) {
  const CompareOptions options = flags.compare.options();
  flags.baseline = input_path(flags.baseline);
  for (std::string& test : flags.tests) test = input_path(test);
  // A pipe can be read only once, so it is taken for what the other is.
  const auto can_look = [](const std::string& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) || fs::is_directory(path, ignored);
  };
  const CompareKind kind =
      flags.is_by_queues ? kAmd : kind_of(can_look(flags.baseline) ? flags.baseline : flags.tests[0]);
  if (kind != kResults && flags.tests.size() != 1)
    reject(fmt::format("{}: is compared with one other, not with {}", flags.baseline, flags.tests.size()),
           "weir compare BASELINE TEST");
  // Two that are not even results get the message of whoever reads the first of them.
  const CompareKind other = can_look(flags.tests[0]) ? kind_of(flags.tests[0]) : kind;
  if (kind != other && kind != kAmd && other != kAmd)
    reject(fmt::format("{}: is {}, and {} is {}", flags.tests[0], other.name, flags.baseline, kind.name),
           "Compare two of one kind. `weir report A B` shows different ones on one page.");
  try {
    return kind.judge(flags, options);
  } catch (const Interrupted&) {
    return kExitInterrupted;
  }
}

}  // namespace

CliCommand compare() {
  return command("compare", "say whether a run is slower, faster or the same as its baseline", execute_compare);
}

}  // namespace weir::cli
