// weir amd join: one row per hardware queue from a capture's log, kernel trace and snapshots, and one timeline of all.
#include <fmt/format.h>

#include <filesystem>

#include "amd/join/join_load.h"
#include "amd/join/merged_timeline.h"
#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "cli/default_output.h"
#include "cli/document_output.h"
#include "cli/list.h"
#include "cli/process.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

struct AmdJoinFlags : DocumentOutput {
  std::string folder;
  std::vector<std::string> logs, traces, snapshots, pids;
  std::string trace_clock;
  std::string timeline;
  bool has_no_timeline = false, is_full = false;

  void add_to(CommandSyntax syntax) {
    syntax.add("folder DIR", folder, "what weir amd capture wrote");
    syntax.add("--log PATH", logs, "without a capture: a runtime log (AMD_LOG_LEVEL); repeatable");
    syntax.add("--ftrace PATH", traces, "without a capture: text of the kernel's tracer");
    syntax.add("--snapshot PATH", snapshots,
               "without a capture: a folder with hqds, mqds, rls, sysfs; repeatable, in the order of time");
    syntax.add("--trace-clock NAME", trace_clock,
               "clock of the trace (local, mono, boot ...) where no manifest says it");
    syntax.add("--pid LOG=HOST", pids, "a process of the log is this one of the host; repeatable");
    syntax.add("--timeline PATH", timeline, "Chrome JSON of everything (default: timeline.json in the folder)");
    syntax.add("--no-timeline", has_no_timeline, "write no timeline").excludes("--timeline");
    syntax.add("--full", is_full, "also other processes, handles of streams, each snapshot");
    DocumentOutput::add_to(syntax);
    syntax.footer("Exit code: 0 fine, 2 bad input. A part that is missing or broken is named, the rest is joined.");
  }
};

// "17=3934101": the log's pid, then the host's.
std::pair<int, int> pid_pair(const std::string& value) {
  const auto [log_text, host_text] = parse_assignment("--pid", value);
  const std::int64_t log = parse_integer(log_text).value_or(0), host = parse_integer(host_text).value_or(0);
  if (log < 1 || host < 1 || log > 1 << 22 || host > 1 << 22)
    reject(fmt::format("--pid {}: not a pair of process ids", value),
           "Write --pid LOG=HOST, e.g. --pid 17=3934101: NSpid of /proc/HOST/status has both.");
  return {static_cast<int>(log), static_cast<int>(host)};
}

amd::CaptureFiles files_to_join(const AmdJoinFlags& flags) {
  const bool has_files = !flags.logs.empty() || !flags.traces.empty() || !flags.snapshots.empty();
  if (flags.folder.empty() && !has_files)
    reject("nothing to join", "Name the folder of a capture, or files: --log FILE --ftrace FILE --snapshot DIR.");
  if (!flags.folder.empty() && has_files)
    reject("a folder and files cannot be combined",
           "Name the folder of a capture, or --log, --ftrace and --snapshot, not both.");
  amd::CaptureFiles files;
  if (!flags.folder.empty()) {
    files = amd::files_of_capture(flags.folder);
  } else {
    files.logs.assign(flags.logs.begin(), flags.logs.end());
    files.traces.assign(flags.traces.begin(), flags.traces.end());
    for (const std::string& folder : flags.snapshots) {
      // "run/during-01/" is during-01.
      const fs::path path = fs::path(folder).lexically_normal();
      const fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
      files.snapshots.push_back({name.string(), folder, INT64_MIN});
    }
  }
  if (!flags.trace_clock.empty()) files.trace_clock = flags.trace_clock;
  for (const std::string& pid : flags.pids) files.given.push_back(pid_pair(pid));
  return files;
}

// The file for the timeline; empty: none.
fs::path timeline_of(const AmdJoinFlags& flags, std::string& note) {
  if (flags.has_no_timeline) return {};
  if (!flags.timeline.empty()) {
    check_writable(flags.timeline, flags.is_forced);
    return flags.timeline;
  }
  if (flags.folder.empty()) return {};
  const fs::path path =
      default_output((fs::path(flags.folder) / "timeline").string(), ".json", earlier_output(flags.is_forced));
  try {
    check_writable(path, flags.is_forced);
  } catch (const Error& cannot) {
    note = fmt::format("No timeline: {}. --timeline FILE writes it elsewhere.", cannot.what());
    return {};
  }
  return path;
}

int execute_amd_join(const AmdJoinFlags& flags) {
  flags.check_output();
  const amd::CaptureFiles files = files_to_join(flags);
  std::string note;
  const fs::path timeline = timeline_of(flags, note);
  const std::atomic<bool>& stop = catch_interrupts();

  const amd::LoadedCapture capture = amd::load_capture(files, &stop);
  if (stop.load(std::memory_order_relaxed)) return kExitInterrupted;
  const amd::Join join = amd::join_queues(capture.input);
  Json document = amd::join_document(capture.input, join, capture.about);
  if (!timeline.empty()) {
    const amd::TimelineCounts counts = amd::write_merged_timeline(capture, join, timeline, flags.is_forced, &stop);
    if (counts.is_stopped) return kExitInterrupted;
    document["timeline"] = amd::to_json(counts, timeline.string());
  }
  flags.print(document, amd_join_report(document, flags.is_full));
  // Printed to stderr, so as not to corrupt a document that goes through a pipe.
  if (!flags.is_quiet && !timeline.empty()) print_err("Timeline written to {}\n", timeline.string());
  if (!flags.is_quiet && !note.empty()) print_err("{}\n", note);
  return 0;
}

}  // namespace

CliCommand amd_join() {
  return command("join", "one row per hardware queue from log, kernel trace and snapshots, and one timeline",
                 execute_amd_join);
}

}  // namespace weir::cli
