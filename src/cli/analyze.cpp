// weir analyze: reads traces of any origin and reports where the time went.
#include "run/analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/trace_flags.h"
#include "report/text/documents.h"
#include "report/text/svg.h"
#include "trace/export/chrome_json.h"
#include "trace/export/timeline_csv.h"
#include "trace/export/timeline_sqlite.h"
#include "trace/merge.h"

namespace weir::cli {
namespace {

struct AnalyzeFlags : DocumentOutput {
  std::vector<std::string> files;
  TraceFlags trace;
  std::string svg, kineto, csv, sqlite, peaks;
  std::string threshold = "5%";
  std::string top = "15";
  bool are_ranks = false, is_full = false, is_strict = false;

  void add_to(CommandSyntax syntax) {
    syntax
        .add("files FILE", files,
             "traces: Kineto/PyTorch, rocprofv3 and rocprof-sys (Perfetto too), JAX/XLA, Nsight Systems, "
             "rocmProfileData, "
             "CUPTI text or Weir's own; packed ones and archives too (.gz, .zst, .xz, .tar, .zip; -: standard input). "
             "Files of several ranks are put together")
        .required();
    syntax.add("--ranks", are_ranks, "the files are ranks of one job, whatever they say of themselves");
    trace.add_to(syntax);
    syntax.add(
        "--operators", trace.has_operations,
        "also in the words of the model: operators (aten::mm) with their shapes, modules, phases, steps, lines of the "
        "program (PyTorch's traces); reading takes up to twice as long");
    syntax.add("--peaks PATH", peaks,
               "summary.json of `weir bench` on this device: its measured peaks instead of the data sheet's, for "
               "--operators");
    syntax.add("--full", is_full, "all devices and long lists");
    syntax.add("--top N", top, "names per list of the document");
    DocumentOutput::add_to(syntax);
    syntax.add("--svg PATH", svg, "draw the timeline to this file");
    syntax.add("--export PATH", kineto, "write the timeline as Chrome/Kineto JSON");
    syntax.add("--csv PATH", csv, "write the timeline as CSV");
    syntax.add("--sqlite PATH", sqlite, "write the timeline as a SQLite database, for queries");
    // Two runs of the same ranks, which is an old spelling of `weir compare`.
    syntax.add("--threshold PERCENT", threshold, "").hidden();
    syntax.add("--strict", is_strict, "").hidden();
    syntax.footer("Exit code: 0 fine, 2 bad input.");
  }
};

std::set<int> ranks_of(const Timeline& timeline) {
  std::set<int> ranks;
  for (const TraceProcess& process : timeline.processes) ranks.insert(process.rank);
  return ranks;
}

// Files with different ranks are ranks of one job; two files with the same ranks are two runs of it.
bool are_two_runs(const AnalyzeFlags& flags, const std::vector<ImportedTrace>& traces) {
  if (flags.are_ranks || traces.size() != 2) return false;
  const std::set<int> first = ranks_of(traces[0].timeline), second = ranks_of(traces[1].timeline);
  return std::any_of(first.begin(), first.end(), [&](int rank) { return second.contains(rank); });
}

// One file per process, as PyTorch writes them; with several processes, each name contains the rank.
void export_kineto(const AnalyzeFlags& flags, const Timeline& timeline) {
  std::set<std::uint16_t> processes;
  for (const TraceStream& stream : timeline.streams) processes.insert(timeline.devices[stream.device].process);
  for (const std::uint16_t process : processes) {
    std::filesystem::path path = flags.kineto;
    if (processes.size() > 1) {
      const std::string extension = path.extension().string();
      path.replace_extension(fmt::format("rank{}{}", timeline.processes[process].rank, extension));
    }
    ChromeExport options;
    options.process = process;
    options.world_size = static_cast<int>(processes.size());
    write_chrome_json(timeline, options, path, flags.is_forced);
    flags.report_written(path.string());
  }
}

int execute_analyze(const AnalyzeFlags& flags) {
  flags.check_output();
  for (const std::string* path : {&flags.svg, &flags.kineto, &flags.csv, &flags.sqlite})
    if (!path->empty()) check_writable(*path, flags.is_forced);
  if (!flags.sqlite.empty()) check_sqlite_export(flags.sqlite);
  AnalyzeOptions options;
  if (!flags.peaks.empty()) options.peaks = peaks_measured(read_json(flags.peaks), flags.peaks);
  options.top = static_cast<std::size_t>(number_within("--top", flags.top, 1, 1000));
  options.command_line = run_context().command_line;
  options.window = window_named(flags.trace.window);

  ProgressLine line(flags.is_quiet);
  line.show("reading", 0, 1);
  const ImportOptions import = flags.trace.import_options();
  std::vector<ImportedTrace> traces;
  try {
    std::vector<std::filesystem::path> files;
    for (const std::string& file : flags.files) files.emplace_back(input_path(file));
    traces = import_traces(files, import);
  } catch (const Interrupted&) {
    line.clear();
    return kExitInterrupted;
  }
  line.clear();
  if (are_two_runs(flags, traces)) {
    for (const std::string* path : {&flags.svg, &flags.kineto, &flags.csv, &flags.sqlite})
      if (!path->empty())
        reject("--svg, --export, --csv and --sqlite are for one timeline", "Pass only one file, or use --ranks.");
    print_err("weir: two traces of the same ranks are two runs: weir compare A B (--ranks: one job)\n");
    CompareOptions compare;
    compare.threshold = share_of("--threshold", flags.threshold);
    return print_trace_comparison(traces[0], traces[1], options.window, compare, flags.is_strict, flags);
  }

  std::vector<ImportedFile> files;
  std::vector<Timeline> parts;
  for (ImportedTrace& trace : traces) {
    files.insert(files.end(), trace.files.begin(), trace.files.end());
    parts.push_back(std::move(trace.timeline));
  }
  Timeline timeline = parts.size() == 1 ? std::move(parts[0]) : merge(std::move(parts));
  line.show("analysing", 0, 1);
  const Json document = analyze_timeline(timeline, files, options);
  line.clear();
  flags.print(document, analysis_report(document, flags.is_full));
  if (!flags.svg.empty()) flags.write(flags.svg, timeline_svg(analysed_part(timeline, document), {title_of(files)}));
  if (!flags.kineto.empty()) export_kineto(flags, timeline);
  if (!flags.csv.empty()) {
    write_timeline_csv(timeline, flags.csv, flags.is_forced);
    flags.report_written(flags.csv);
  }
  if (!flags.sqlite.empty()) {
    write_timeline_sqlite(timeline, flags.sqlite, flags.is_forced, import.progress);
    flags.report_written(flags.sqlite);
  }
  return 0;
}

}  // namespace

CliCommand analyze() {
  return command("analyze", "read traces of any origin and say where the time went", execute_analyze);
}

}  // namespace weir::cli
