// weir run: one workload, one device, one result.
#include <fmt/format.h>

#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/run_flags.h"
#include "report/console.h"
#include "report/dot.h"
#include "report/step_text.h"

namespace weir::cli {
namespace {

struct Flags {
  RunFlags run;
  WorkloadFlags workload;
  std::string streams;
  std::string submit = "inline";
  std::string output;
  std::string dot;
  bool is_dry = false;
};

// Draws and describes the step without touching the device's memory.
void show_step(const Flags& flags, const RunRequest& request, const DeviceInfo& info) {
  const StepView view = view_of(request, build_run(info, request));
  if (flags.dot == "-") {
    fmt::print("{}", draw_step(view));
  } else if (!flags.dot.empty()) {
    write_file(flags.dot, draw_step(view), flags.run.is_forced);
  }
  if (!flags.is_dry || flags.run.is_quiet || flags.dot == "-") return;
  fmt::print("{}", describe_step(view));
  if (!flags.dot.empty()) fmt::print("\nDrawn to {}\n", flags.dot);
}

int execute(const Flags& flags) {
  RunRequest request = flags.run.request();
  flags.workload.choose(request);
  request.submit = flags.submit;
  const Workload& workload = workload_of(request);
  if (!flags.streams.empty()) {
    const auto counts = parse_counts("--streams", flags.streams, workload.streams.min, workload.streams.max);
    if (counts.size() != 1)
      reject(fmt::format("--streams {}: one count is needed here", flags.streams), "`weir sweep` runs several.");
    request.streams = counts[0];
  }
  if (!flags.output.empty()) check_writable(flags.output, flags.run.is_forced);
  if (!flags.dot.empty() && flags.dot != "-") check_writable(flags.dot, flags.run.is_forced);
  if (flags.is_dry && !flags.output.empty())
    reject("--output: a dry run has no result", "Leave out --output, or --dry-run.");
  const auto device = flags.run.open();
  if (flags.is_dry || !flags.dot.empty()) show_step(flags, request, device->info());
  if (flags.is_dry) return 0;

  // A drawing on standard output is for a program, which would stumble over anything else.
  const bool is_quiet = flags.run.is_quiet || flags.dot == "-";
  RunControl control;
  control.stop = &catch_interrupts();
  ProgressLine line(is_quiet);
  control.progress = [&](std::string_view phase, int done, int total) { line.show(phase, done, total); };
  const Result result = run_workload(*device, request, run_context(), control);
  line.clear();
  // What the user can mend by other flags (sizes that do not fit) is a message, not a result.
  if (result.status == "failed" && result.fault == Fault::input) reject(result.failure, result.hint);
  const Json json = to_json(result);
  if (!flags.output.empty()) write_file(flags.output, to_text(json), flags.run.is_forced);
  if (!is_quiet) {
    fmt::print("{}", describe_result(json));
    if (!flags.output.empty()) fmt::print("\nWritten to {}\n", flags.output);
    if (!flags.dot.empty()) fmt::print("\nDrawn to {}\n", flags.dot);
  }
  if (result.status == "failed") {
    fail(result.failure, result.hint);
  }
  return control.is_stopped() ? kExitInterrupted : 0;
}

}  // namespace

CliCommand run() {
  return {"run", "run one workload and say where the time went", [](CLI::App& app) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            flags->workload.add_to(app);
            app.add_option("--streams", flags->streams, "number of streams (default: the workload's recommended)");
            app.add_option("--submit", flags->submit, "inline, threads[:k] or graph")->capture_default_str();
            flags->run.add_to(app);
            app.add_option("--output,-o", flags->output, "write the result (weir.result/1) to this file");
            app.add_option("--dot", flags->dot, "draw the step for Graphviz to this file (-: standard output)");
            app.add_flag("--dry-run", flags->is_dry, "build, place, describe and draw the step, but run nothing");
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
