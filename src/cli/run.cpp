// weir run: one workload, one device, one result; or all workloads of a class.
#include <fmt/format.h>

#include "base/console.h"
#include "base/error.h"
#include "cli/document_output.h"
#include "cli/export_flags.h"
#include "cli/flag_values.h"
#include "cli/hang.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/process_flags.h"
#include "cli/ranks.h"
#include "cli/run_class.h"
#include "cli/run_flags.h"
#include "cli/scheduled.h"
#include "cli/submit_flags.h"
#include "report/text/documents.h"
#include "report/text/step_text.h"
#include "report/text/svg.h"
#include "run/host_profile.h"

namespace weir::cli {
namespace {

constexpr const char* kOneProcess = "--host-profile: for a run of one process";

struct RunCommandFlags {
  RunFlags run;
  WorkloadFlags workload;
  std::string streams;
  SubmitFlags submit;
  ProcessFlags processes;
  DocumentFile document;
  ExportFlags exports;
  std::string dot;
  std::string host_profile;
  std::string seconds;
  bool is_dry = false, resumes = false;

  // A drawing or a document on standard output is for a program, which could not parse anything else.
  bool is_quiet() const { return run.is_quiet || dot == "-" || document.prints_json(); }

  void add_to(CommandSyntax syntax) {
    workload.add_to(syntax, "name, as `weir list` shows it; or a class of them: P0, P1, P2, P3, all");
    syntax.add("--streams N", streams,
               "number of streams; of a class also 1..16:x2 (default: the workload's recommended)");
    submit.add_to(syntax, false);
    run.add_to(syntax);
    syntax.add("--seconds DURATION", seconds,
               "soak: for this long (60, 5m, 2h) instead of --iterations; watches latency, temperature and clocks");
    processes.add_to(syntax);
    document.add_to(syntax,
                    "write the result (weir.result/2) to this file (-: standard output); of a class: the folder "
                    "for one file per workload and report.html (default: results/CLASS), or - for the report "
                    "(weir.report/2) alone");
    exports.add_to(syntax);
    syntax.add("--dot PATH", dot, "draw the step for Graphviz to this file (-: standard output)");
    syntax.add("--host-profile PATH", host_profile,
               "run once more under perf: write where the host spent its time to this file, as folded "
               "stacks, or as a flame graph (.svg)");
    syntax.add("--dry-run", is_dry, "build, place, describe and draw the step, but run nothing");
    syntax.add("--resume", resumes, "of a class: skip points already measured");
  }
};

// Draws and describes the step without using the device's memory.
void show_step(const RunCommandFlags& flags, const RunRequest& request, const DeviceInfo& info, Ranks ranks) {
  const StepView view = view_of(request, build_run(info, request, ranks));
  if (flags.dot == "-") {
    write_out(draw_step(view));
  } else if (!flags.dot.empty()) {
    write_file(flags.dot, draw_step(view), flags.run.is_forced);
  }
  if (!flags.is_dry || flags.is_quiet()) return;
  write_out(describe_step(view));
  if (!flags.dot.empty()) print_out("\nDrawn to {}\n", flags.dot);
}

// Writes perf's view of the host, as a flame graph where the file's name ends in .svg, and adds it to the result; if
// there is none, the run still succeeds.
void add_host_profile(const RunCommandFlags& flags, Device& device, const RunRequest& request,
                      const RunControl& control, Result& result) {
  const std::string& file = flags.host_profile;
  HostProfile profile = profile_host(device, request, run_context(), control, result, file);
  if (!profile.stacks.empty()) {
    const std::string title = fmt::format("{}, {} streams on {}: the host at {} Hz", result.workload, result.streams,
                                          device.info().name, kHostProfileHz);
    write_file(file, file.ends_with(".svg") ? flame_svg(profile.stacks, title) : folded_text(profile.stacks),
               flags.run.is_forced);
  } else {
    result.unavailable["metrics.host_profile"] = profile.reason;
    result.warnings.push_back({"no_host_profile", fmt::format("there is no host profile: {}", profile.reason),
                               "The result is as good without it. docs/profile.md says what perf needs."});
  }
  result.metrics["host_profile"] = std::move(profile.facts);
}

// Writes and prints a result; the exit code that follows from its status.
int finish_run(const RunCommandFlags& flags, const Json& json, bool is_quiet) {
  const std::string output = flags.document.path();
  if (!output.empty()) write_file(output, to_text(json), flags.run.is_forced);
  if (flags.document.prints_json()) write_json(to_text(json));
  flags.exports.write({&json, 1}, flags.run.is_forced);
  if (!is_quiet) {
    write_out(describe_result(json));
    if (!output.empty()) print_out("\nWritten to {}\n", output);
    if (!flags.dot.empty()) print_out("\nDrawn to {}\n", flags.dot);
    if (const Json& profile = at_path(json, {"metrics", "host_profile"}); profile.is_object())
      print_out("\nHost profile of {} samples written to {}\n", profile["samples"].dump(), flags.host_profile);
  }
  return json["status"] == "interrupted" ? kExitInterrupted : 0;
}

// This run again and again, each time in a new process; only the first traces, because timelines differ less than
// times.
int run_several(const RunCommandFlags& flags, const RunRequest& request, const ProcessCount& count) {
  const DeviceInfo info = flags.run.info(one_unit_count(flags.run.compute_units));
  const Ranks ranks{0, rank_count(flags.run.ranks)};
  const BuiltRun built = build_run(info, request, ranks);
  if (!flags.dot.empty()) show_step(flags, request, info, ranks);
  const RunContext context = run_context();
  const bool is_quiet = flags.is_quiet();
  ProgressLine line(flags.run.is_quiet);
  ProcessesControl control;
  ChildOutcome last;
  control.run = [&](std::size_t, std::size_t round) {
    line.show(process_words(count, round), static_cast<int>(round), static_cast<int>(count.most));
    last = run_child(child_run(flags.run, flags.workload, info, flags.streams, request.submit.name,
                               one_unit_count(flags.run.compute_units), round > 0),
                     catch_interrupts());
    if (last.end == ChildEnd::failed && last.code == static_cast<int>(Fault::input)) reject(last.message, last.hint);
    if (last.document.is_object()) last.document["command_line"] = context.command_line;
    return last;
  };
  std::vector<Json> result(1);
  run_in_processes(count, request.seed, result, control, catch_interrupts());
  line.clear();
  Json& json = result[0];
  if (json.is_null()) return kExitInterrupted;  // not one process ended
  if (process_count(json) == 1 && !json.contains("schema")) {
    // It left no document: it was killed, or crashed.
    Result failed = describe_run(info, request, built, context);
    failed.status = "failed";
    failed.failure = last.message;
    failed.hint = last.hint;
    json = to_json(failed);
  }
  const int code = finish_run(flags, json, is_quiet);
  if (json["status"] == "failed") fail(json["failure"].get<std::string>(), last.hint);
  return code;
}

// How long to soak: a bare number is seconds, because the flag's name says so. 0: by iterations.
std::int64_t soak_ns(const RunCommandFlags& flags, const ProcessCount& processes) {
  const std::string& text = flags.seconds;
  if (text.empty()) return 0;
  if (flags.run.iterations != RunFlags().iterations)
    reject(fmt::format("--seconds {}: there is --iterations {} too", text, flags.run.iterations),
           "Leave one of them out.");
  if (!processes.is_one()) reject(fmt::format("--seconds {}: a soak is one process", text), "Leave out --processes.");
  const bool is_bare = text.find_first_not_of("0123456789.") == std::string::npos;
  return static_cast<std::int64_t>(seconds_of("--seconds", is_bare ? text + "s" : text) * 1e9);
}

// All workloads of a class: several results, and none of the pictures of one.
int run_class_of(const RunCommandFlags& flags) {
  const std::pair<const char*, bool> others[] = {{"--processes", flags.processes.processes != "1"},
                                                 {"--until", !flags.processes.until.empty()},
                                                 {"--budget", !flags.processes.budget.empty()},
                                                 {"--dot", !flags.dot.empty()},
                                                 {"--host-profile", !flags.host_profile.empty()},
                                                 {"--dry-run", flags.is_dry},
                                                 {"--seconds", !flags.seconds.empty()}};
  for (const auto& [flag, is_given] : others)
    if (is_given)
      reject(fmt::format("{}: is for one workload, and {} is a class of them", flag, flags.workload.name),
             "Leave it out, or name one workload: `weir list` shows them.");
  return run_class({flags.workload.name, flags.run, flags.streams, flags.submit, flags.document.output, flags.exports,
                    flags.resumes, flags.document.prints_json()});
}

int execute_run(const RunCommandFlags& flags) {
  if (flags.workload.file.empty() && is_class(flags.workload.name)) return run_class_of(flags);
  if (flags.resumes)
    reject("--resume: one run has nothing to continue", "It is for a class (`weir run P0`), and for `weir sweep`.");
  rank_count(flags.run.ranks);  // rejects
  RunRequest request = flags.run.request();
  flags.workload.choose(request);
  request.submit = flags.submit.way();
  const Workload& workload = workload_of(request);
  if (!flags.streams.empty()) request.streams = one_stream_count(flags.streams, workload, "`weir sweep` runs several.");
  const auto check_output = [&] {
    if (const std::string output = flags.document.path(); !output.empty()) check_writable(output, flags.run.is_forced);
    if (!flags.dot.empty() && flags.dot != "-") check_writable(flags.dot, flags.run.is_forced);
    if (!flags.host_profile.empty()) check_writable(flags.host_profile, flags.run.is_forced);
    flags.exports.check(flags.run.is_forced);
  };
  const bool has_output = !flags.document.path().empty();
  if (flags.is_dry && (has_output || flags.document.prints_json() || flags.exports.is_asked()))
    reject(fmt::format("--{}: a dry run has no result", has_output                     ? "output"
                                                        : flags.document.prints_json() ? "json"
                                                        : flags.exports.csv.empty()    ? "openmetrics"
                                                                                       : "csv"),
           "Leave it out, or --dry-run.");
  if (flags.is_dry && !flags.host_profile.empty())
    reject("--host-profile: a dry run runs nothing", "Leave out --host-profile, or --dry-run.");
  const ProcessCount processes = flags.processes.count();
  request.duration_ns = soak_ns(flags, processes);
  if (!processes.is_one() && !flags.is_dry) {
    if (!flags.host_profile.empty()) reject(kOneProcess, "Leave out --processes.");
    check_output();
    return run_several(flags, request, processes);
  }
  if (must_start_ranks(flags.run.ranks)) {
    if (!flags.host_profile.empty()) reject(kOneProcess, "Leave out --ranks.");
    check_output();
    const int count = rank_count(flags.run.ranks);
    // Checked here, so that a mistake gives one message instead of one per rank.
    check_request(flags.run.open()->info(), request, {0, count});
    return start_ranks(count);
  }
  Communicator* const ranks = join_ranks();
  if (ranks != nullptr && !flags.host_profile.empty()) reject(kOneProcess, "Start it without mpirun.");
  if (is_first_rank()) check_output();
  auto device = flags.run.open(ranks);
  if (is_first_rank() && (flags.is_dry || !flags.dot.empty()))
    show_step(flags, request, device->info(), ranks != nullptr ? ranks->ranks() : Ranks{});
  if (flags.is_dry) {
    leave_ranks();
    return 0;
  }

  const bool is_quiet = flags.is_quiet();
  RunControl control;
  control.stop = &catch_interrupts();
  control.communicator = ranks;
  watch_hangs(control, flags.run.hang_timeout);
  ProgressLine line(flags.run.is_quiet || !is_first_rank());
  control.progress = [&](std::string_view phase, int done, int total) { line.show(phase, done, total); };
  if (ranks != nullptr) check_request(device->info(), request, ranks->ranks());
  watch_ranks();
  Result result = run_workload(*device, request, run_context(), control);
  if (!flags.host_profile.empty()) add_host_profile(flags, *device, request, control, result);
  line.clear();
  device.reset();
  // Hold times are known only after the run.
  if (Json facts = scheduling_facts(); !facts.is_null()) result.environment["scheduler"] = std::move(facts);
  leave_ranks();
  if (!is_first_rank()) return 0;
  // Errors that the user can fix with other flags (sizes that do not fit) become a message, not a result.
  if (result.status == "failed" && result.fault == Fault::input) throw result.error();
  const int code = finish_run(flags, to_json(result), is_quiet);
  if (result.status == "failed") throw result.error();
  return control.is_stopped() ? kExitInterrupted : code;
}

}  // namespace

CliCommand run() {
  return command("run", "run a workload, or a class of them, and say where the time went", execute_run);
}

}  // namespace weir::cli
