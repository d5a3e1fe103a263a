// weir overlap: a training step with real collectives, and why its communication is not hidden.
#include "lab/overlap/overlap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/console.h"
#include "base/error.h"
#include "cli/default_output.h"
#include "cli/export_flags.h"
#include "cli/hang.h"
#include "cli/list.h"
#include "cli/overlap_flags.h"
#include "cli/process.h"
#include "cli/process_flags.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "device/rank/alone.h"
#include "device/rank/network.h"
#include "report/text/documents.h"
#include "report/text/svg.h"
#include "trace/analyse/slice.h"
#include "trace/export/chrome_json.h"
#include "trace/merge.h"
#include "weir_build.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

// A step from the middle: the first ones may still be warming up, and a picture of all steps would be unreadable.
std::uint32_t middle_iteration(const Timeline& timeline) {
  std::vector<std::uint32_t> iterations;
  for (const Span& span : timeline.spans) iterations.push_back(span.iteration);
  if (iterations.empty()) return 0;
  std::nth_element(iterations.begin(), iterations.begin() + static_cast<std::ptrdiff_t>(iterations.size() / 2),
                   iterations.end());
  return iterations[iterations.size() / 2];
}

std::string lines_text(const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) text += line.dump() + "\n";
  return text;
}

// The folder that a run writes to: as given, or results/overlap-NAME, with a number appended if that exists. Rejects a
// folder that holds files already, unless `overwrites`.
fs::path overlap_folder(const std::string& asked, const std::string& name, bool overwrites) {
  std::error_code ignored;
  if (asked.empty()) return default_output("results/overlap-" + name, "", earlier_output(overwrites));
  if (fs::exists(asked, ignored) && !fs::is_directory(asked, ignored))
    reject(fmt::format("-o {}: is not a folder", asked), "`weir overlap` writes several files: name a folder.");
  if (!overwrites && fs::is_directory(asked, ignored) && !fs::is_empty(asked, ignored))
    reject(fmt::format("-o {}: the folder is not empty", asked), "Choose another, or use --force.");
  // The folder is created only when there is something to write; whether that is possible is checked before the run.
  fs::path above = fs::absolute(asked, ignored);
  while (!fs::exists(above, ignored) && above.has_relative_path()) above = above.parent_path();
  if (!fs::is_directory(above, ignored) || ::access(above.c_str(), W_OK) != 0)
    reject(fmt::format("-o {}: cannot write into {}", asked, above.string()), "Choose another folder.");
  return asked;
}

// Writes rank_NN.jsonl, summary.json, report.md, rank_NN.svg and trace.json (all ranks on one clock). Returns their
// names.
std::vector<std::string> write_overlap(const fs::path& folder, const OverlapRun& run, bool overwrites) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(fmt::format("{}: cannot create the folder: {}", folder.string(), error.message()));
  std::vector<std::string> written;
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file(folder / name, text, overwrites);
    written.push_back(name);
  };
  for (std::size_t rank = 0; rank < run.iterations.size(); ++rank)
    write(fmt::format("rank_{:02}.jsonl", rank), lines_text(run.iterations[rank]));
  write("summary.json", to_text(run.summary));
  write("report.md", report_markdown(overlap_report(run.summary)));
  const bool has_timelines =
      !run.timelines.empty() && std::none_of(run.timelines.begin(), run.timelines.end(),
                                             [](const Timeline& timeline) { return timeline.spans.empty(); });
  if (!has_timelines) return written;
  for (std::size_t rank = 0; rank < run.timelines.size(); ++rank) {
    SvgOptions options;
    const std::uint32_t iteration = middle_iteration(run.timelines[rank]);
    options.title = fmt::format("{}: rank {}, step {}", run.summary["name"].get<std::string>(), rank, iteration);
    write(fmt::format("rank_{:02}.svg", rank), timeline_svg(only_iteration(run.timelines[rank], iteration), options));
  }
  ChromeExport options;
  options.process = std::nullopt;
  options.world_size = static_cast<int>(run.timelines.size());
  options.about = {{"version", WEIR_VERSION}};
  for (const char* key : {"created", "command_line", "name", "config", "parameters"})
    options.about[key] = run.summary[key];
  Timeline all = merge(run.timelines);
  for (TraceProcess& process : all.processes) process.clock = 0;  // rank 0's clock: no need to align them again
  write_chrome_json(all, options, folder / "trace.json", overwrites);
  written.emplace_back("trace.json");
  return written;
}

struct OverlapCommandFlags {
  OverlapFlags config;
  ProcessFlags processes;
  std::string output, summary;
  ExportFlags exports;
  bool is_json = false, is_quiet = false, is_forced = false, lists_keys = false;
  std::shared_ptr<std::function<int()>> below;

  // Whether there is a folder of files.
  bool writes() const { return summary.empty() && output != "-"; }

  void add_to(CommandSyntax syntax) {
    config.add_to(syntax);
    processes.add_to(syntax);
    syntax.add("--output,-o PATH", output,
               "folder for all files (default: results/overlap-NAME; -: print the summary, and write none)");
    syntax.add("--summary PATH", summary, "write the summary (weir.overlap/2) to this file, and no other");
    exports.add_to(syntax);
    syntax.add("--json", is_json, "print the summary, and no text; of a sweep, a list of them");
    syntax.add("--list", lists_keys, "list the keys of a config, and run nothing");
    syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
    syntax.add("--force,-f", is_forced, "replace existing files");
    below = syntax.add_commands(overlap_commands());
    syntax.footer("Exit code: 0 fine, 1 the output or a loss is wrong, or it hung, 2 bad input,\n130 interrupted.");
  }
};

void list_keys() {
  for (const OverlapKey& key : overlap_keys()) {
    std::string range = !key.choices.empty() ? std::string(key.choices) : "";
    if (!key.initial.empty()) range += fmt::format("{}default {}", range.empty() ? "" : "; ", key.initial);
    print_out("{:<28} {}{}\n", key.name, key.help, range.empty() ? "" : fmt::format(" ({})", range));
  }
}

// Drivers read their number of queues once, at their start; Weir's own devices get it as an option.
void set_queue_variables(const OverlapConfig& config) {
  const std::string queues = config.value("run.hw_queues");
  if (queues == "0") return;
  for (const char* const variable : kQueueVariables) ::setenv(variable, queues.c_str(), 1);
}

std::unique_ptr<Device> open_overlap_device(const OverlapConfig& config, Communicator& communicator) {
  const std::string queues = config.value("run.hw_queues");
  DeviceOptions options = device_options(queues == "0" ? "" : queues, {}, &communicator);
  options.stages_collectives = !config.network().is_plain();
  return open_device(config.value("run.device"), options);
}

// Checks what depends only on the device, before any rank is started.
void check_points(const OverlapConfig& config, const std::vector<OverlapPoint>& points, int ranks) {
  AloneCommunicator alone;
  for (const OverlapPoint& point : points) {
    if (point.variables != points.front().variables) continue;  // its config is that of another point
    const DeviceInfo info = open_overlap_device(point.config, alone)->info();
    check_overlap(info, point.config, {0, ranks, true});
    const bool sweeps_queues = point.config.value("run.hw_queues") != config.value("run.hw_queues");
    if (sweeps_queues && !info.queue_variable.empty())
      reject(fmt::format("sweep: run.hw_queues: the driver of '{}' reads their number once, at its start", info.name),
             "Run them one by one with --set, or use `weir overlap tune`.");
  }
}

struct MeasuredPoint {
  Json document;  // entry of the sweep: assignments, summary, failure
  bool is_interrupted = false;
};

MeasuredPoint run_point(const OverlapCommandFlags& flags, const OverlapPoint& point,
                        const std::filesystem::path& folder, Communicator* job) {
  AloneCommunicator alone;
  Communicator& ranks = job != nullptr ? *job : static_cast<Communicator&>(alone);
  NetworkCommunicator network(ranks, point.config.network());
  Communicator& between = point.config.network().is_plain() ? ranks : static_cast<Communicator&>(network);
  auto device = open_overlap_device(point.config, between);
  RunControl control;
  control.stop = &catch_interrupts();
  control.communicator = &between;
  ProgressLine line(flags.is_quiet || !is_first_rank());
  const std::string which = fmt::format("{}", fmt::join(point.assignments, ", "));
  control.progress = [&](std::string_view phase, int done, int total) {
    line.show(which.empty() ? std::string(phase) : fmt::format("{}: {}", which, phase), done, total);
  };
  const std::string timeout = point.config.value("run.hang_timeout");
  watch_hangs(control, timeout == "0" ? "" : timeout + "s");
  // Without an explicit timeout, reports contain less, and GPUs are not disturbed.
  control.follows_commands = point.config.has("run.hang_timeout");
  const OverlapRun run = run_overlap(*device, point.config, ranks, run_context(), control);
  line.clear();
  MeasuredPoint result;
  result.is_interrupted = run.is_interrupted;
  if (!is_first_rank()) return result;
  result.document = {{"assignments", point.assignments},
                     {"summary", run.summary},
                     {"failure", run.failure.empty() ? Json(nullptr) : Json(run.failure)}};
  if (!flags.summary.empty()) {
    write_file(flags.summary, to_text(run.summary), flags.is_forced);
  } else if (flags.writes()) {
    const std::vector<std::string> written = write_overlap(folder, run, flags.is_forced);
    if (!flags.is_quiet && !flags.is_json)
      print_out("{}\nWritten to {}: {} files{}\n", report_text(overlap_report(run.summary)), folder.string(),
                written.size(), written.back() == "trace.json" ? ", trace.json holds all ranks" : "");
  }
  // Several documents in a row are not valid JSON; those of a sweep are printed as one list.
  if (flags.is_json && point.assignments.empty()) write_json(to_text(run.summary));
  flush_out();
  return result;
}

// Exports and reports what all points gave; the exit code that follows.
int finish_overlap(const OverlapCommandFlags& flags, const OverlapConfig& config, const Json& sweep,
                   const fs::path& folder, bool is_interrupted) {
  if (flags.exports.is_asked()) {
    std::vector<Json> summaries;
    for (const Json& each : sweep) summaries.push_back(each["summary"]);
    flags.exports.write(summaries, flags.is_forced);
  }
  if (flags.is_json && config.varies()) write_json(to_text(sweep));
  if (overlap_points(config).size() > 1) {
    const TextReport report = overlap_sweep_report(sweep);
    if (flags.writes()) write_file(folder / "report.md", report_markdown(report), flags.is_forced);
    if (!flags.is_quiet && !flags.is_json) print_out("\n{}", report_text(report));
  }
  for (const Json& each : sweep)
    if (each["failure"].is_string()) fail(each["failure"].string(), "The summary has the details.");
  return is_interrupted ? kExitInterrupted : 0;
}

fs::path folder_of(const OverlapPoint& point, const fs::path& folder) {
  const std::string name = point.folder_name();
  return name.empty() ? folder : folder / name;
}

// Rejects values that differ only in characters that names of folders do not have.
void check_folders(const std::vector<OverlapPoint>& points) {
  std::set<std::string> names;
  for (const OverlapPoint& point : points)
    if (!names.insert(point.folder_name()).second)
      reject(fmt::format("two points would have the folder {}", point.folder_name()),
             "Values that differ only in blanks, slashes or signs cannot be distinguished: run them one by one.");
}

// Every point in processes of its own, in random order within each round. The first process of each writes all files,
// the others add their samples to its summary.
int overlap_processes(const OverlapCommandFlags& flags, const OverlapConfig& config,
                      const std::vector<OverlapPoint>& points, int ranks, const fs::path& folder) {
  const ProcessCount count = flags.processes.count();
  const RunContext context = run_context();
  ProgressLine line(flags.is_quiet);
  ProcessesControl control;
  control.add = add_overlap_process;
  control.run = [&](std::size_t side, std::size_t round) {
    line.show(fmt::format("{}: {}", points[side].config.name, process_words(count, round)),
              static_cast<int>(round * points.size() + side), static_cast<int>(count.most * points.size()));
    ChildRequest child;
    child.limit_ns = kNoChildLimit;
    child.arguments = flags.config.words(points[side].assignments, ranks);
    child.output_flag = "--summary";
    if (round == 0 && flags.writes()) {
      child.output_flag = "-o";
      child.folder = folder_of(points[side], folder);
      child.document = "summary.json";
      child.arguments.emplace_back("--force");  // whether files may be replaced was checked before
    }
    apply(points[side].variables, child);
    ChildOutcome outcome = run_child(child, catch_interrupts());
    if (outcome.document.is_object()) {
      outcome.document["command_line"] = context.command_line;
      if (!points[side].variables.empty()) outcome.document["set_variables"] = to_json(points[side].variables);
    }
    return outcome;
  };
  std::vector<Json> summaries(points.size());
  const RoundsOutcome outcome = run_in_processes(count, static_cast<std::uint64_t>(config.integer("training.seed")),
                                                 summaries, control, catch_interrupts());
  line.clear();
  Json sweep = Json::array();
  const Json* lost = nullptr;  // the first point without a document: the others are written all the same
  for (std::size_t side = 0; side < summaries.size(); ++side) {
    const Json& summary = summaries[side];
    if (summary.is_null()) continue;
    if (!summary.contains("schema")) {
      if (lost == nullptr) lost = &summary;
      continue;
    }
    sweep.push_back({{"assignments", points[side].names()}, {"summary", summary}, {"failure", summary["failure"]}});
    const TextReport report = overlap_report(summary);
    const fs::path place = folder_of(points[side], folder);
    if (flags.writes()) {
      write_file(place / "summary.json", to_text(summary), true);
      write_file(place / "report.md", report_markdown(report), true);
    } else if (!flags.summary.empty()) {
      write_file(flags.summary, to_text(summary), flags.is_forced);
    }
    if (flags.is_json && !config.varies()) write_json(to_text(summary));
    if (!flags.is_quiet && !flags.is_json)
      print_out("{}\nWritten to {}\n", report_text(report), flags.summary.empty() ? place.string() : flags.summary);
  }
  if (sweep.empty() && lost == nullptr) return kExitInterrupted;
  const bool is_interrupted = outcome.end == RoundsEnd::interrupted;
  const int code = sweep.empty() ? 0 : finish_overlap(flags, config, sweep, folder, is_interrupted);
  if (lost != nullptr) {
    const Json& hint = at_path(*lost, {"hint"});
    fail(at_path(*lost, {"failure"}).string(), hint.is_string() ? hint.string() : "");
  }
  return code;
}

int execute_overlap(OverlapCommandFlags flags) {
  if (*flags.below) return (*flags.below)();
  flags.is_json = flags.is_json || flags.output == "-";
  if (flags.lists_keys) {
    list_keys();
    return 0;
  }
  const OverlapConfig config = flags.config.load();
  set_queue_variables(config);
  const std::vector<OverlapPoint> points = overlap_points(config);
  if (!flags.summary.empty() && points.size() > 1) reject("--summary: a sweep has several", "Use -o FOLDER.");
  if (!flags.summary.empty() && !flags.output.empty())
    reject("--summary writes no other file, so there is nothing for --output", "Leave one of them out.");
  const int count = flags.config.ranks_of(config);
  const std::filesystem::path folder =
      is_first_rank() && flags.writes() ? overlap_folder(flags.output, config.name, flags.is_forced) : "";
  if (is_first_rank() && !flags.summary.empty()) check_writable(flags.summary, flags.is_forced);
  if (is_first_rank()) flags.exports.check(flags.is_forced);
  if (flags.writes()) check_folders(points);
  if (!flags.processes.count().is_one() || !config.variables.empty()) {
    check_points(config, points, count);
    return overlap_processes(flags, config, points, count, folder);
  }
  if (count > 1 && job_ranks().count == 1) {
    check_points(config, points, count);
    return start_ranks(count);
  }
  Communicator* const job = join_ranks();
  if (job == nullptr) check_points(config, points, 1);
  watch_ranks();
  Json sweep = Json::array();
  bool is_interrupted = false;
  for (const OverlapPoint& point : points) {
    MeasuredPoint result = run_point(flags, point, folder_of(point, folder), job);
    is_interrupted = result.is_interrupted;
    if (is_first_rank()) sweep.push_back(std::move(result.document));
    if (is_interrupted) break;
  }
  leave_ranks();
  return is_first_rank() ? finish_overlap(flags, config, sweep, folder, is_interrupted) : 0;
}

}  // namespace

CliCommand overlap() {
  return command("overlap", "train with real collectives: why is communication not hidden?", execute_overlap);
}

}  // namespace weir::cli
