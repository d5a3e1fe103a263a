// weir analyze: reads traces of any origin and reports where the time went; two traces of the same ranks are compared.
#include "run/analyze.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "base/units.h"
#include "cli/document_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "report/text/documents.h"
#include "report/text/svg.h"
#include "run/trace_compare.h"
#include "trace/export/chrome_json.h"
#include "trace/export/timeline_csv.h"
#include "trace/import/list.h"
#include "trace/merge.h"

namespace weir::cli {
namespace {

std::string format_help() {
  std::string names;
  for (const Importer& importer : importers()) names += (names.empty() ? "" : ", ") + std::string(importer.name);
  return "format of the files, if their beginning does not show it: " + names;
}

struct AnalyzeFlags : DocumentOutput {
  std::vector<std::string> files;
  std::string input_format;
  std::string svg, kineto, csv;
  std::string memory;
  std::string window = "steady";
  std::string threshold = "5%";
  std::string top = "15";
  std::vector<std::string> collectives;
  bool are_ranks = false, are_compared = false;
  bool is_full = false, is_strict = false;

  void add_to(CommandSyntax syntax) {
    syntax
        .add("files FILE", files,
             "traces: Kineto/PyTorch, rocprofv3, Nsight Systems, rocmProfileData, CUPTI text or Weir's own; "
             ".gz and .tar.gz too (-: standard input). Files of several ranks are put together; two of the same are "
             "compared")
        .required();
    syntax.add("--input-format NAME", input_format, format_help());
    syntax.add("--ranks", are_ranks, "the files are ranks of one job, whatever they say of themselves");
    syntax.add("--compare", are_compared, "compare two traces, the first is the baseline").excludes("--ranks");
    syntax.add("--collective PATTERN", collectives,
               "kernels whose name has this in it communicate; * stands for any text, repeatable");
    syntax.add("--window PART", window,
               "the part to analyse: steady (without the program's start-up, if the trace shows one), all, or "
               "BEGIN..END since the first command, e.g. 1.5s..3s");
    syntax.add("--full", is_full, "all devices and long lists");
    syntax.add("--top N", top, "names per list of the document");
    DocumentOutput::add_to(syntax);
    syntax.add("--svg PATH", svg, "draw the timeline to this file");
    syntax.add("--export PATH", kineto, "write the timeline as Chrome/Kineto JSON");
    syntax.add("--csv PATH", csv, "write the timeline as CSV");
    syntax.add("--memory SIZE", memory, "most memory for timelines, e.g. 4G (default: half of the machine's)");
    syntax.add("--threshold PERCENT", threshold, "comparing: the smallest change that matters");
    syntax.add("--strict", is_strict, "comparing: exit 4 if a pair is too noisy to judge");
    syntax.footer("Exit code: 0 fine, 2 bad input; comparing: 3 something slower, 4 (--strict) too noisy to say.");
  }
};

std::uint64_t memory_of(const AnalyzeFlags& flags) {
  if (flags.memory.empty()) {
    // Half of the machine's memory: the analyses need about as much again as the timeline.
    const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
    const auto size = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGE_SIZE)));
    return std::max(pages * size / 2, std::uint64_t{256} << 20);
  }
  return size_of("--memory", flags.memory, 1 << 20, std::uint64_t{1} << 50);
}

// "steady", "all", "1.5s..3s", "1.5s..", "..3s"
std::optional<TimeInterval> window_of(const AnalyzeFlags& flags) {
  if (flags.window == "steady") return std::nullopt;
  if (flags.window == "all") return kWholeTrace;
  constexpr std::int64_t kWeek = std::int64_t{7} * 24 * 3600 * 1'000'000'000;
  const std::size_t dots = flags.window.find("..");
  if (dots == std::string::npos)
    reject(fmt::format("--window {}: not a part of a trace", flags.window), "Write 1.5s..3s, steady or all.");
  const std::string begin = flags.window.substr(0, dots), end = flags.window.substr(dots + 2);
  const TimeInterval part{begin.empty() || begin == "0" ? 0 : duration_of("--window", begin, 0, kWeek),
                          end.empty() ? kWeek : duration_of("--window", end, 0, kWeek)};
  if (part.from_ns >= part.to_ns)
    reject(fmt::format("--window {}: it ends before it begins", flags.window), "Write 1.5s..3s.");
  return part;
}

std::set<int> ranks_of(const Timeline& timeline) {
  std::set<int> ranks;
  for (const TraceProcess& process : timeline.processes) ranks.insert(process.rank);
  return ranks;
}

// Files with different ranks are ranks of one job; two files with the same ranks are two runs of it.
bool must_compare(const AnalyzeFlags& flags, const std::vector<ImportedTrace>& traces) {
  if (flags.are_compared && traces.size() != 2)
    reject(fmt::format("--compare: two traces are needed, these files hold {}", traces.size()));
  if (flags.are_compared || flags.are_ranks || traces.size() != 2) return flags.are_compared;
  const std::set<int> first = ranks_of(traces[0].timeline), second = ranks_of(traces[1].timeline);
  return std::any_of(first.begin(), first.end(), [&](int rank) { return second.contains(rank); });
}

std::string title_of(const std::vector<ImportedFile>& files) {
  return files.size() == 1 ? files[0].name : fmt::format("{} and {} more", files[0].name, files.size() - 1);
}

int compare_two(const AnalyzeFlags& flags, const std::vector<ImportedTrace>& traces) {
  CompareOptions options;
  options.threshold = share_of("--threshold", flags.threshold);
  if (flags.window != "steady") reject("--window is for one timeline", "Pass only one file, or use --ranks.");
  for (const std::string* path : {&flags.svg, &flags.kineto, &flags.csv})
    if (!path->empty()) reject("--svg, --export and --csv are for one timeline", "Pass only one file, or use --ranks.");
  const TraceComparison comparison = compare_traces(traces[0].timeline, title_of(traces[0].files), traces[1].timeline,
                                                    title_of(traces[1].files), options);
  const Json document = trace_comparison_json(comparison, flags.is_strict);
  flags.print(
      document, [&] { return trace_comparison_text(document); }, [&] { return trace_comparison_markdown(document); });
  return exit_code(comparison, flags.is_strict);
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
  for (const std::string* path : {&flags.svg, &flags.kineto, &flags.csv})
    if (!path->empty()) check_writable(*path, flags.is_forced);
  AnalyzeOptions options;
  options.top = static_cast<std::size_t>(number_within("--top", flags.top, 1, 1000));
  options.command_line = run_context().command_line;
  options.window = window_of(flags);

  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line(flags.is_quiet);
  ImportOptions import;
  import.format = flags.input_format;
  import.collectives = patterns_of("--collective", flags.collectives);
  import.limits.memory_bytes = memory_of(flags);
  import.progress = [&] {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{};
  };
  std::vector<ImportedTrace> traces;
  try {
    std::vector<std::filesystem::path> files;
    for (const std::string& file : flags.files) files.emplace_back(input_path(file));
    traces = import_traces(files, import);
  } catch (const Interrupted&) {
    line.clear();
    return kExitInterrupted;
  }
  if (must_compare(flags, traces)) return compare_two(flags, traces);

  std::vector<ImportedFile> files;
  std::vector<Timeline> parts;
  for (ImportedTrace& trace : traces) {
    files.insert(files.end(), trace.files.begin(), trace.files.end());
    parts.push_back(std::move(trace.timeline));
  }
  Timeline timeline = parts.size() == 1 ? std::move(parts[0]) : merge(std::move(parts));
  const Json document = analyze_timeline(timeline, files, options);
  flags.print(document, analysis_report(document, flags.is_full));
  if (!flags.svg.empty()) flags.write(flags.svg, timeline_svg(analysed_part(timeline, document), {title_of(files)}));
  if (!flags.kineto.empty()) export_kineto(flags, timeline);
  if (!flags.csv.empty()) {
    write_timeline_csv(timeline, flags.csv, flags.is_forced);
    flags.report_written(flags.csv);
  }
  return 0;
}

}  // namespace

CliCommand analyze() {
  return command("analyze", "read traces of any origin and say where the time went", execute_analyze);
}

}  // namespace weir::cli
