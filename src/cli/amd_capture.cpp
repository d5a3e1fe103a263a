// weir amd capture: runs a program, or finds one that runs already, while recording ROCm's log, the kernel's trace and
// KFD's state into one folder.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "amd/capture/capture_run.h"
#include "amd/capture/capture_sources.h"
#include "amd/capture/containers.h"
#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "cli/capture_flags.h"
#include "cli/default_output.h"
#include "cli/flag_values.h"
#include "cli/list.h"
#include "cli/process.h"
#include "report/text/documents.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

struct AmdCaptureFlags {
  std::vector<std::string> program;
  std::string output, pid, container, seconds;
  std::string log_level = std::to_string(amd::kQueueLogLevel), log_mask = fmt::format("{:#x}", amd::kQueueLogMask);
  std::string log_size = "8G", buffer = "16M", interval = "1s", snapshots = "20", keep = "first", format = "text";
  bool has_no_trace = false, wants_graph = false, uses_top = false, is_dry = false, is_json = false, is_forced = false,
       is_quiet = false;
  amd::CaptureRoots roots;

  void add_to(CommandSyntax syntax) {
    syntax.add("program WORD", program, "after --: the program and its arguments");
    syntax.add("--pid PID", pid, "capture this process and its children, which run already");
    syntax.add("--container NAME", container, "capture what runs in this container (docker, podman): a name or an id");
    syntax.add("--seconds DURATION", seconds,
               "end a capture of --pid or --container after this time: 60s (default: when it ends, or at Ctrl-C)");
    syntax.add("--output,-o PATH", output, "the folder (default: NAME-DATE-TIME.capture)");
    syntax.add("--log-level N", log_level, "AMD_LOG_LEVEL of the program");
    syntax.add("--log-mask MASK", log_mask, "AMD_LOG_MASK of the program");
    syntax.add("--log-size SIZE", log_size, "size of the log at which ROCm starts it anew");
    syntax.add("--graph", wants_graph, "trace calls with their durations (function_graph)");
    syntax.add("--no-ftrace", has_no_trace, "leave the kernel's trace out");
    syntax.add("--buffer SIZE", buffer, "size of the trace of each CPU; halved where memory is short");
    syntax.add("--keep NAME", keep, "of a trace that is too long: first or last");
    syntax.add("--top-instance", uses_top,
               "trace in the kernel's own buffer; its settings are put back, what is in it is lost");
    syntax.add("--interval DURATION", interval, "time between snapshots: 500ms, 1s");
    syntax.add("--snapshots N", snapshots, "of KFD's state while the program runs, at most");
    syntax.add("--dry-run", is_dry, "print the commands, change nothing");
    syntax.add("--json", is_json, "print the manifest, for programs");
    syntax.add("--format NAME", format, "form of the summary").one_of({"text", "markdown"});
    syntax.add("--force,-f", is_forced, "replace an earlier capture");
    syntax.add("--quiet,-q", is_quiet, "no summary");
    add_capture_roots(syntax, roots);
  }
};

int whole(const char* flag, const std::string& text, int lowest, int highest) {
  return static_cast<int>(whole_number(flag, text, lowest, highest, "out of range",
                                       fmt::format("Use a whole number from {} to {}.", lowest, highest)));
}

// 0x21099b, or 2165147
std::uint32_t mask(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || text[0] == '-' || text[0] == '+' || text[0] == ' ' || *end != '\0' || errno != 0 ||
      value > 0x7fffffff)
    reject(fmt::format("--log-mask {}: not a mask", text),
           "Use a number such as 0x21099b; docs/amd_capture.md has the bits.");
  return static_cast<std::uint32_t>(value);
}

// In MiB, as ROCm and the kernel take it.
int mebibytes(const char* flag, const std::string& text, std::uint64_t highest) {
  return static_cast<int>(size_of(flag, text, 1 << 20, highest << 20) >> 20);
}

// The words after "--"; without it, the words after the flags.
std::vector<std::string> program_words(const AmdCaptureFlags& flags) {
  const auto words = words_after_mark();
  if (!words) return flags.program;
  const std::vector<std::string>& program = *words;
  if (flags.program.size() > program.size())
    reject(fmt::format("{}: unexpected word before the program", flags.program[0]),
           "weir amd capture [flags] -- ./program arguments");
  return program;
}

// What --pid or --container names, which has to run now.
void find_target(const AmdCaptureFlags& flags, amd::CaptureRequest& request) {
  if (!request.command.empty())
    reject(fmt::format("{}: a program is not started beside --pid or --container", request.command[0]),
           "Leave one of them out.");
  if (!flags.pid.empty() && !flags.container.empty())
    reject("--container: --pid names a process already", "Leave one of them out.");
  amd::CaptureTarget target;
  std::string missing;
  if (!flags.pid.empty()) {
    request.first_pid = whole("--pid", flags.pid, 1, std::numeric_limits<int>::max());
    target.pid = request.first_pid;
    missing = fmt::format("--pid {}: no such process", request.first_pid);
    // The id that a container shows is another one outside.
    for (const amd::Container& one :
         amd::containers_in(read_kernel_file(fmt::format("{}/{}/cgroup", request.roots.proc(), request.first_pid))))
      target.container_id = one.id, target.runtime = one.runtime;
  } else {
    const amd::Container container = amd::find_container(request.roots, flags.container);
    target.container = flags.container;
    target.container_id = container.id;
    target.runtime = container.runtime;
    request.cgroup = container.cgroup;
    const std::vector<pid_t> processes = amd::processes_in(request.roots, container);
    missing = fmt::format("--container {}: its processes ended meanwhile", flags.container);
    if (!processes.empty()) request.first_pid = *std::min_element(processes.begin(), processes.end());
  }
  request.command = amd::process_command(request.roots.proc(), request.first_pid);
  if (request.command.empty())
    reject(missing, "ps -e lists processes; a container's have other numbers outside of it.");
  request.target = std::move(target);
  if (!flags.seconds.empty())
    request.duration_ns = duration_of("--seconds", flags.seconds, 10'000'000, 86'400'000'000'000);
}

// "train-20260131-120000": of programs by their file, of others by what they were asked for.
std::string folder_stem(const amd::CaptureRequest& request, const AmdCaptureFlags& flags) {
  std::string stem = fs::path(request.command[0]).filename().string();
  if (request.target) stem = flags.container.empty() ? "pid-" + flags.pid : flags.container;
  return fmt::format("{}-{}", stem, time_for_names());
}

amd::CaptureRequest request_of(const AmdCaptureFlags& flags) {
  amd::CaptureRequest request;
  request.roots = flags.roots;
  request.command = program_words(flags);
  if (flags.pid.empty() && flags.container.empty()) {
    if (request.command.empty())
      reject("a program is required after --",
             "For example: weir amd capture -- ./program arguments; --pid and --container take one that runs already.");
    if (!flags.seconds.empty())
      reject("--seconds: a program is captured until it ends", "Use it with --pid or --container.");
  } else {
    find_target(flags, request);
  }
  request.log_level = whole("--log-level", flags.log_level, 0, 5);
  request.log_mask = mask(flags.log_mask);
  request.log_size_mib = mebibytes("--log-size", flags.log_size, 1'000'000);
  request.has_trace = !flags.has_no_trace;
  request.wants_graph = flags.wants_graph;
  request.uses_top_instance = flags.uses_top;
  request.buffer_mib = mebibytes("--buffer", flags.buffer, 1024);
  request.interval_ns = duration_of("--interval", flags.interval, 10'000'000, 86'400'000'000'000);
  request.max_snapshots = whole("--snapshots", flags.snapshots, 0, 10'000);
  const std::vector<std::string> ends = {"first", "last"};
  if (flags.keep != "first" && flags.keep != "last")
    reject(fmt::format("--keep {}: is neither first nor last", flags.keep), suggestion(flags.keep, ends));
  request.keeps_first = flags.keep == "first";
  if (!request.target && !find_program(request.command[0]))
    reject(fmt::format("{}: no such program", request.command[0]), "Give a path, or a name that PATH has.");
  return request;
}

int execute_amd_capture(const AmdCaptureFlags& flags) {
  amd::CaptureRequest request = request_of(flags);
  const fs::path output = flags.output.empty()
                              ? default_output(folder_stem(request, flags), ".capture", earlier_output(flags.is_forced))
                              : fs::path(flags.output);
  if (flags.is_dry) {
    request.folder = fs::absolute(output).lexically_normal().string();
    request.pid = ::getpid();
    const amd::CaptureFacts facts = survey(request);
    print_out("{}", amd::capture_script(request, amd::plan_capture(request, facts)));
    return 0;
  }
  amd::CaptureFolder folder(output, flags.is_forced);
  const amd::CaptureEnd end = amd::capture_program(std::move(request), folder);
  const Json document = amd::to_json(end.manifest);
  if (flags.is_json) {
    write_json(to_text(document));
  } else if (!flags.is_quiet) {
    // Standard output belongs to the program.
    const TextReport report = capture_report(document, end.bytes, output.string());
    print_err("{}", flags.format == "markdown" ? report_markdown(report) : report_text(report));
  }
  if (!end.problem.empty()) {
    const std::string what = fmt::format("the capture is not complete: {}", end.problem);
    if (end.code == 0) fail(what, "Free some space, or name a folder on another disk with -o.");
    print_err("weir: {}\n", what);
  }
  return end.code;
}

}  // namespace

void add_capture_roots(CommandSyntax syntax, amd::CaptureRoots& roots) {
  syntax.add("--tracefs PATH", roots.tracefs, "where tracefs is, for tests").for_tests();
  syntax.add("--debugfs PATH", roots.debugfs, "where debugfs is, for tests").for_tests();
  syntax.add("--sysfs PATH", roots.sysfs, "where sysfs is, for tests").for_tests();
  syntax.add("--kmsg PATH", roots.kmsg, "the kernel's log, for tests").for_tests();
  syntax.add("--smi PATH", roots.smi, "a file of events for each GPU, for tests").for_tests();
  syntax.add("--root PATH", roots.root, "what has proc, etc and var, for tests").for_tests();
}

std::string time_for_names() {
  std::string time = wall_time();  // 2026-01-31T12:00:00Z
  std::erase_if(time, [](char c) { return c == '-' || c == ':' || c == 'Z'; });
  std::replace(time.begin(), time.end(), 'T', '-');
  return time;
}

CliCommand amd_capture() {
  return command("capture",
                 "run a program or watch one that runs, and keep its ROCm log, the kernel's trace and KFD's state",
                 execute_amd_capture);
}

}  // namespace weir::cli
