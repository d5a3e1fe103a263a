// weir profile: a traced pass next to the timed one, written as a trace; or an unmodified program of the user.
#include "run/profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/options.h"
#include "base/secrets.h"
#include "cli/default_output.h"
#include "cli/flag_values.h"
#include "cli/hang.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "cli/submit_flags.h"
#include "device/gpu/cupti.h"
#include "device/gpu/rocprofiler.h"
#include "device/gpu/trace.h"
#include "report/text/documents.h"
#include "run/profile_program.h"
#include "run/profile_rocprof.h"

namespace weir::cli {
namespace {

constexpr const char* kRocprofilerSdk = "rocprofiler-sdk";

struct ProfileFlags {
  RunFlags run;
  WorkloadFlags workload;
  std::string profiler = "auto", limit = "4G";
  std::vector<std::string> rest;  // the words after the first one that is not a flag
  std::string streams;
  SubmitFlags submit;
  std::string traced_iterations = "20";
  std::string output;
  std::string format = "kineto";
  bool has_latency = false;
  std::string graphs = "commands";
  bool is_json = false;
  std::string child;  // set in a process under rocprofv3: the file for what it notes

  void add_to(CommandSyntax syntax) {
    workload.add_to(syntax);
    syntax.add("program WORD", rest, "after --: a program of yours and its arguments");
    syntax.add("--streams N", streams, "number of streams (default: the workload's recommended)");
    submit.add_to(syntax, false);
    run.add_to(syntax);
    syntax.add("--traced-iterations N", traced_iterations, "iterations in the trace");
    syntax.add("--output,-o PATH", output,
               "the trace (default: NAME.trace.json, .gz if large; -: standard output); .gz packs it");
    syntax.add("--trace-format NAME", format, "kineto (Chrome JSON, for Perfetto) or csv");
    syntax.add("--latency-timestamps", has_latency, "ask CUPTI when each kernel left its queue (costs more)");
    syntax
        .add("--graphs NAME", graphs,
             "of a program after --: record each command of a CUDA graph, or whole graphs (cheaper)")
        .one_of({"commands", "whole"});
    syntax.add("--profiler NAME", profiler, "auto, cupti or rocprofv3; for a workload also events or rocprofiler-sdk");
    syntax.add(kOutsideFlag, child, "").hidden();
    syntax.add("--capture-limit SIZE", limit, "of a program after --: most records of each process");
    syntax.add("--json", is_json, "print the document (weir.profile/2)");
  }
};

// Rejects an unknown format. Without a name it is STEM.trace.json or STEM.trace.csv in the current folder, or STEM-2...
// if that exists.
ProfileOutput output_of(const ProfileFlags& flags, const std::string& stem) {
  ProfileOutput output{flags.format, flags.output, flags.run.is_forced};
  const std::vector<std::string> formats = {"kineto", "csv"};
  if (flags.format != formats[0] && flags.format != formats[1])
    reject(fmt::format("--trace-format {}: traces cannot be written in this format", flags.format),
           suggestion(flags.format, formats));
  if (flags.output == "-") {
    if (flags.is_json)
      reject("--json: standard output holds the trace already (-o -)",
             "Leave --json out, or name a file: -o trace.json.");
    if (!flags.run.ranks.empty()) reject("-o -: each rank has a trace", "Name a file: -o trace.json.");
    output.path = "/dev/stdout";
    return output;
  }
  output.is_default = output.path.empty();
  if (!output.is_default) return output;
  // One name stands for the files of all ranks, compressed or not.
  const auto is_taken = [&](const std::filesystem::path& candidate) {
    output.path = candidate;
    std::error_code ignored;
    for (const char* const word : {"", "rank0"})
      for (const std::size_t commands : {std::size_t{0}, kManyCommands})
        if (std::filesystem::exists(output.named(word, commands), ignored)) return true;
    return false;
  };
  output.path = default_output(stem, flags.format == "csv" ? ".trace.csv" : ".trace.json",
                               earlier_output(flags.run.is_forced), is_taken);
  return output;
}

// `write` is not write_out() where standard output belongs to the user's program.
void print(const ProfileFlags& flags, const Json& document, void (*write)(std::string_view) noexcept) {
  if (flags.is_json) {
    write_json(to_text(document));
  } else if (!flags.run.is_quiet) {
    write(describe_profile(document));
  }
}

int profile_any_program(const ProfileFlags& flags, const std::vector<std::string>& command) {
  if (command.empty()) reject("--: a program is required after it", "For example: weir profile -- python3 train.py");
  // Words before the mark name a workload.
  const std::size_t words = (flags.workload.name.empty() ? 0 : 1) + flags.rest.size();
  if (words > command.size() || !flags.workload.file.empty())
    reject(fmt::format("{}: a program is named after -- as well",
                       flags.workload.file.empty() ? flags.workload.name : "--file " + flags.workload.file),
           "Profile one of them.");
  for (const auto& [flag, value] : {std::pair("--streams", &flags.streams), std::pair("--ranks", &flags.run.ranks)})
    if (!value->empty())
      reject(fmt::format("{} {}: is for workloads, not for a program after --", flag, *value), "Leave it out.");
  if (flags.output == "-") reject("-o -: standard output is the program's", "Name a file: -o trace.json.");
  ProgramRequest request;
  request.command = command;
  request.profiler = flags.profiler;
  if (const auto rocprof = find_program("rocprofv3")) request.rocprof = rocprof->string();
  request.cuda_injection = environment_variable("CUDA_INJECTION64_PATH");
  request.nvtx_injection = environment_variable("NVTX_INJECTION64_PATH");
  request.has_latency = flags.has_latency;
  request.has_whole_graphs = flags.graphs == "whole";
  request.output = output_of(flags, std::filesystem::path(command[0]).filename().string());
  request.output.check();
  request.limit_mib =
      static_cast<std::int64_t>(size_of("--capture-limit", flags.limit, 1 << 20, std::uint64_t{1'000'000} << 20) >> 20);
  if (!find_program(command[0]))
    reject(fmt::format("{}: no such program", command[0]), "Give a path, or a name that PATH has.");
  request.command_line = recorded_command(own_arguments());
  request.stop = catch_interrupts;
  const ProgramProfile profile = profile_program(request);
  if (profile.is_interrupted) {
    print_err("weir: interrupted: what was captured is lost\n");
    return kExitInterrupted;
  }
  print(flags, profile.document, write_err);
  if (profile.code != 0) return profile.code;
  return profile.has_timeline ? 0 : 1;
}

// How a workload is traced, from --profiler.
struct Tracing {
  bool uses_events = false;
  std::string rocprof;     // where rocprofv3 is, if that is to be used
  bool is_chosen = false;  // by the user: there is then no other way
};

Tracing tracing_of(const ProfileFlags& flags, const DeviceInfo& info, const RunRequest& request, bool has_ranks) {
  const std::string& name = flags.profiler;
  const std::vector<std::string> names = {"auto", "events", "cupti", kRocprof, kRocprofilerSdk};
  if (std::find(names.begin(), names.end(), name) == names.end())
    reject(fmt::format("--profiler {}: unknown profiler", name), suggestion(name, names));
  const auto only_on = [&](bool is_right, const char* what) {
    if (!is_right)
      reject(fmt::format("--profiler {}: is for {}, and this is {}", name, what, info.name), "Leave it out.");
  };
  Tracing tracing;
  tracing.is_chosen = name != "auto";
  if (name == "events") {
    only_on(info.backend == "cuda" || info.backend == "hip", "GPUs with events (cuda, hip)");
    tracing.uses_events = true;
  } else if (name == "cupti") {
    only_on(info.backend == "cuda", "NVIDIA GPUs (cuda)");
  } else if (name == kRocprofilerSdk) {
    only_on(info.backend == "hip", "AMD GPUs (hip)");
  } else if (name == kRocprof) {
    only_on(info.backend == "hip", "AMD GPUs (hip)");
    if (has_ranks) reject("--profiler rocprofv3: is for one process, not for --ranks", "Use --profiler events.");
    if (request.submit.mode == SubmitMode::graph)
      reject("--profiler rocprofv3: the commands of a graph have one call, so records cannot be distinguished",
             "Use another --submit mode.");
    const auto rocprof = find_program(kRocprof);
    if (!rocprof) reject("--profiler rocprofv3: not found in PATH", kRocprofHint);
    tracing.rocprof = rocprof->string();
  } else if (info.backend == "hip" && request.submit.mode != SubmitMode::graph && !has_ranks) {
    if (const auto rocprof = find_program(kRocprof)) tracing.rocprof = rocprof->string();
  }
  return tracing;
}

// This run again, for a process under rocprofv3.
std::vector<std::string> traced_words(const ProfileFlags& flags, const RunRequest& request, const DeviceInfo& info,
                                      int iterations) {
  std::vector<std::string> words = child_run(flags.run, flags.workload, info, flags.streams, request.submit.name,
                                             one_unit_count(flags.run.compute_units), false)
                                       .arguments;
  words[0] = "profile";
  words.push_back(fmt::format("--traced-iterations={}", iterations));
  return words;
}

// In a process under rocprofv3: the traced pass alone, and what this process knows of it.
int trace_for_parent(const ProfileFlags& flags, const RunRequest& request, int iterations) {
  trace_from_outside();
  const auto device = flags.run.open();
  RunControl control;
  control.stop = &catch_interrupts();
  const BuiltRun built = build_run(device->info(), request);
  const OutsidePass outside = run_outside_pass(*device, built, iterations, control, workload_of(request).roles);
  write_file(flags.child, to_json(outside).dump(), false);
  return control.is_stopped() ? kExitInterrupted : 0;
}

int execute_profile(const ProfileFlags& flags) {
  if (const auto program = words_after_mark()) return profile_any_program(flags, *program);
  if (!flags.rest.empty())
    reject(fmt::format("{}: one workload is profiled at a time", flags.rest[0]),
           "A program of yours goes after --: weir profile -- ./program arguments");
  if (flags.workload.name.empty() && flags.workload.file.empty())
    reject("a workload or a program is required",
           "For example: weir profile moe --device sim:h200, or with a program of yours: weir profile -- python3 "
           "train.py");
  if (flags.workload.name.find('/') != std::string::npos || flags.workload.name.ends_with(".py"))
    reject(fmt::format("{}: is not the name of a workload", flags.workload.name),
           fmt::format("A program of yours goes after --: weir profile -- {}{}",
                       flags.workload.name.ends_with(".py") ? "python3 " : "", flags.workload.name));
  if (flags.run.skips_trace) reject("--no-trace: a profile is a trace", "Use `weir run` for timings alone.");
  rank_count(flags.run.ranks);  // rejects
  RunRequest request = flags.run.request();
  flags.workload.choose(request);
  request.submit = flags.submit.way();
  const Workload& workload = workload_of(request);
  if (!flags.streams.empty()) request.streams = one_stream_count(flags.streams, workload, "A trace is of one run.");
  const std::int64_t traced =
      whole_number("--traced-iterations", flags.traced_iterations, 1, 1'000'000, "out of range");
  if (!flags.child.empty()) return trace_for_parent(flags, request, static_cast<int>(traced));
  const ProfileOutput output = output_of(flags, workload.name);
  if (must_start_ranks(flags.run.ranks)) {
    const int count = rank_count(flags.run.ranks);
    for (int rank = 0; rank < count; ++rank)
      check_writable(output.named(fmt::format("rank{}", rank), 0), flags.run.is_forced);
    check_request(flags.run.open()->info(), request, {0, count});
    return start_ranks(count);
  }
  if (flags.profiler == kRocprofilerSdk) {
    // Before anything loads the GPU's runtime, which MPI may do.
    std::string reason;
    if (!configure_rocprofiler(&reason))
      reject(fmt::format("--profiler {}: {}", kRocprofilerSdk, reason), "Leave it out: auto takes what there is.");
  }
  Communicator* const ranks = join_ranks();
  const std::string word = ranks == nullptr ? "" : fmt::format("rank{}", ranks->ranks().rank);
  output.check(word);
  if (flags.has_latency) {
    // Must happen before anything touches the driver.
    std::string reason;
    if (!enable_cupti_latency(&reason)) reject(fmt::format("--latency-timestamps: {}", reason), "Leave it out.");
  }
  auto device = flags.run.open(ranks);
  const DeviceInfo info = device->info();
  if (!info.runs())
    reject(fmt::format("--device {}: it runs nothing, so there is no timeline", info.name),
           "Use a GPU, cpu or sim; `weir run --device null` shows the cost of submitting.");
  const Tracing tracing = tracing_of(flags, info, request, ranks != nullptr);
  RunControl control;
  control.stop = &catch_interrupts();
  control.communicator = ranks;
  watch_hangs(control, flags.run.hang_timeout);
  ProgressLine line(flags.run.is_quiet || !is_first_rank());
  control.progress = [&](std::string_view phase, int done, int total) { line.show(phase, done, total); };
  if (ranks != nullptr) check_request(info, request, ranks->ranks());
  watch_ranks();
  const TracePass trace = [&](const BuiltRun& built, int iterations) {
    std::string reason;
    if (!tracing.rocprof.empty()) {
      RocprofPass found =
          trace_under_rocprof(tracing.rocprof, traced_words(flags, request, info, iterations), built, *control.stop);
      if (found.pass) return std::move(*found.pass);
      if (found.is_interrupted) return TracedPass{};
      if (tracing.is_chosen) fail(fmt::format("--profiler {}: {}", kRocprof, found.reason), found.hint);
      reason = found.reason;
    }
    TracedPass pass = run_traced_pass(*device, built.step, built.placement, built.submit, TraceSchedule(iterations),
                                      control, workload.roles, tracing.uses_events);
    if (tracing.is_chosen && !tracing.uses_events && !pass.timeline.has_exact_gaps && !pass.timeline.spans.empty())
      fail(fmt::format("--profiler {}: {}", flags.profiler, pass.timeline.source), "Use --profiler auto.");
    if (!reason.empty()) pass.timeline.notes.push_back(fmt::format("rocprofv3 was not used: {}", reason));
    return pass;
  };
  WorkloadProfile profile = profile_workload(*device, request, static_cast<int>(traced), run_context(), control, trace);
  line.clear();
  device.reset();
  profile.document["format"] = flags.format;
  const bool has_timeline = !profile.timeline.spans.empty();
  if (has_timeline)
    output.write(profile.timeline, 0, ::getpid(), profile.ranks, profile.device_properties,
                 output.named(word, profile.timeline.spans.size()), profile.document);
  leave_ranks();
  if (!is_first_rank()) return 0;
  if (!has_timeline && profile.is_interrupted) {
    print_err("weir: interrupted: there is no trace\n");
    return kExitInterrupted;
  }
  print(flags, profile.document, flags.output == "-" ? write_err : write_out);
  if (!has_timeline)
    fail(fmt::format("no trace was written: {}", profile.timeline.source), "Use another --submit mode.");
  return profile.is_interrupted ? kExitInterrupted : 0;
}

}  // namespace

CliCommand profile() {
  return command("profile", "trace a workload, or any program after --, into a timeline", execute_profile);
}

}  // namespace weir::cli
