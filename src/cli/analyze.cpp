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
#include "cli/ranks.h"
#include "cli/trace_files.h"
#include "cli/trace_flags.h"
#include "device/rank/alone.h"
#include "report/text/documents.h"
#include "report/text/svg.h"
#include "run/analyze_exchange.h"
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

  // The files that need the whole timeline.
  std::vector<std::string> exports() const {
    std::vector<std::string> paths;
    for (const std::string* path : {&svg, &kineto, &csv, &sqlite})
      if (!path->empty()) paths.push_back(*path);
    return paths;
  }

  void add_to(CommandSyntax syntax) {
    syntax
        .add("files FILE", files,
             "traces, or folders with traces in them: Kineto/PyTorch, rocprofv3 and rocprof-sys (Perfetto too), "
             "JAX/XLA, Nsight Systems, "
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
    syntax.footer("Exit code: 0 fine, 2 bad input. Under mpirun or srun each process reads its share: docs/traces.md.");
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

// Reads this process's share; all ranks agree on who reads what. Memory that nobody limited is for all processes of
// the host together.
TraceShare read_share(const AnalyzeFlags& flags, ImportOptions import, Communicator* ranks) {
  TraceShare share;
  std::vector<std::string> notes;
  std::vector<std::filesystem::path> files;
  if (is_first_rank()) files = trace_files(flags.files, import, notes);
  for (const std::string& note : notes) print_err("weir: {}\n", note);
  if (ranks == nullptr) {
    share.traces = import_traces(files, import);
    share.total = share.traces.size();
    for (std::size_t i = 0; i < share.total; ++i) share.numbers.push_back(i);
    share.keeps_traces = !flags.exports().empty();
    return share;
  }
  const std::vector<CaptureFiles> captures =
      broadcast_captures(*ranks, is_first_rank() ? captures_of(files, import) : std::vector<CaptureFiles>());
  if (flags.trace.memory.empty())
    import.limits.memory_bytes /= static_cast<std::uint64_t>(std::max(1, ranks->local_ranks().count));
  share.total = captures.size();
  std::vector<std::uint64_t> sizes;
  for (const CaptureFiles& capture : captures) sizes.push_back(capture.bytes);
  share.numbers = captures_of_rank(sizes, ranks->ranks());
  files.clear();
  for (const std::size_t number : share.numbers)
    files.insert(files.end(), captures[number].paths.begin(), captures[number].paths.end());
  share.traces = import_traces(files, import);
  return share;
}

// In a job the two may be in different processes.
void reject_two_runs(const AnalyzeFlags& flags, const TraceShare& share, Communicator& ranks) {
  if (flags.are_ranks || share.total != 2) return;
  std::vector<std::string> own;
  for (const ImportedTrace& trace : share.traces) own.push_back(Json(ranks_of(trace.timeline)).dump());
  const std::vector<std::string> all = TraceExchange(ranks, share.numbers, share.total).gather(own);
  if (all.empty()) return;
  const Json first = Json::parse(all[0]), second = Json::parse(all[1]);
  const bool are_alike = std::any_of(first.begin(), first.end(), [&](const Json& rank) {
    return std::find(second.begin(), second.end(), rank) != second.end();
  });
  if (are_alike)
    reject("two traces of the same ranks are two runs, which are compared by one process",
           "weir compare A B, without mpirun or srun; --ranks says that they are one job.");
}

void write_exports(const AnalyzeFlags& flags, const ImportOptions& import, const std::vector<ImportedFile>& files,
                   std::vector<ImportedTrace> traces, const Json& document) {
  std::vector<Timeline> parts;
  for (ImportedTrace& trace : traces) parts.push_back(std::move(trace.timeline));
  Timeline timeline = merge(std::move(parts));
  timeline.notes.clear();
  for (const Json& note : document["notes"]) timeline.notes.push_back(note.get<std::string>());
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
}

void check_files(const AnalyzeFlags& flags) {
  flags.check_output();
  for (const std::string& path : flags.exports()) check_writable(path, flags.is_forced);
  if (!flags.sqlite.empty()) check_sqlite_export(flags.sqlite);
}

int execute_analyze(const AnalyzeFlags& flags) {
  const bool is_job = job_ranks().count > 1;
  if (is_job && !flags.exports().empty())
    reject("--svg, --export, --csv and --sqlite need all timelines in one process, and this job has several",
           "Start weir without mpirun or srun for them.");
  if (is_job && std::find(flags.files.begin(), flags.files.end(), "-") != flags.files.end())
    reject("-: standard input is one process's, and this job has several", "Name files or a folder.");
  if (!is_job) check_files(flags);
  AnalyzeOptions options;
  if (!flags.peaks.empty()) options.peaks = peaks_measured(read_json(flags.peaks), flags.peaks);
  options.top = static_cast<std::size_t>(number_within("--top", flags.top, 1, 1000));
  options.command_line = run_context().command_line;
  options.window = window_named(flags.trace.window);
  const ImportOptions import = flags.trace.import_options();

  Communicator* const ranks = join_ranks();
  if (is_job && is_first_rank()) check_files(flags);
  watch_ranks();
  ProgressLine line(flags.is_quiet || !is_first_rank());
  line.show("reading", 0, 1);
  TraceShare share;
  try {
    share = read_share(flags, import, ranks);
  } catch (const Interrupted&) {
    line.clear();
    return kExitInterrupted;
  }
  line.clear();
  if (ranks != nullptr) {
    reject_two_runs(flags, share, *ranks);
  } else if (are_two_runs(flags, share.traces)) {
    if (!flags.exports().empty())
      reject("--svg, --export, --csv and --sqlite are for one timeline", "Pass only one file, or use --ranks.");
    print_err("weir: two traces of the same ranks are two runs: weir compare A B (--ranks: one job)\n");
    CompareOptions compare;
    compare.threshold = share_of("--threshold", flags.threshold);
    return print_trace_comparison(share.traces[0], share.traces[1], options.window, compare, flags.is_strict, flags);
  }

  std::vector<ImportedFile> files;
  for (const ImportedTrace& trace : share.traces) files.insert(files.end(), trace.files.begin(), trace.files.end());
  line.show("analysing", 0, 1);
  AloneCommunicator alone;
  const Json document = analyze_traces(ranks != nullptr ? *ranks : alone, share, options);
  line.clear();
  leave_ranks();
  if (!is_first_rank()) return 0;
  flags.print(document, analysis_report(document, flags.is_full));
  if (!flags.exports().empty()) write_exports(flags, import, files, std::move(share.traces), document);
  return 0;
}

}  // namespace

CliCommand analyze() {
  return command("analyze", "read traces of any origin and say where the time went", execute_analyze);
}

}  // namespace weir::cli
