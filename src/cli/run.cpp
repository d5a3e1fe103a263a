// weir run: one workload, one device, one result.
#include <fmt/format.h>

#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "report/console.h"

namespace weir::cli {
namespace {

struct Flags {
  RunFlags run;
  std::string workload;
  std::string streams;
  std::string submit = "inline";
  std::string output;
};

int execute(const Flags& flags) {
  rank_count(flags.run.ranks);  // rejects
  RunRequest request = flags.run.request();
  request.workload = flags.workload;
  request.submit = flags.submit;
  const Workload& workload = workload_named(flags.workload);
  if (!flags.streams.empty()) {
    const auto counts = parse_counts("--streams", flags.streams, workload.streams.min, workload.streams.max);
    if (counts.size() != 1)
      reject(fmt::format("--streams {}: one count is needed here", flags.streams), "`weir sweep` runs several.");
    request.streams = counts[0];
  }
  const auto check_output = [&] {
    if (!flags.output.empty()) check_writable(flags.output, flags.run.is_forced);
  };
  if (must_start_ranks(flags.run.ranks)) {
    check_output();
    const int count = rank_count(flags.run.ranks);
    // Here, so that a mistake gives one message and not one per rank.
    check_request(flags.run.open()->info(), request, {0, count});
    return start_ranks(count);
  }
  Communicator* const ranks = join_ranks();
  if (speaks()) check_output();
  auto device = flags.run.open(ranks);

  RunControl control;
  control.stop = &catch_interrupts();
  control.communicator = ranks;
  ProgressLine line(flags.run.is_quiet || !speaks());
  control.progress = [&](std::string_view phase, int done, int total) { line.show(phase, done, total); };
  if (ranks != nullptr) check_request(device->info(), request, ranks->ranks());
  watch_ranks();
  const Result result = run_workload(*device, request, run_context(), control);
  line.clear();
  device.reset();
  leave_ranks();
  if (!speaks()) return 0;
  // What the user can mend by other flags (sizes that do not fit) is a message, not a result.
  if (result.status == "failed" && result.fault == Fault::input) reject(result.failure, result.hint);
  const Json json = to_json(result);
  if (!flags.output.empty()) write_file(flags.output, to_text(json), flags.run.is_forced);
  if (!flags.run.is_quiet) {
    fmt::print("{}", describe_result(json));
    if (!flags.output.empty()) fmt::print("\nWritten to {}\n", flags.output);
  }
  if (result.status == "failed") {
    fail(result.failure, result.hint);
  }
  return result.status == "interrupted" || control.is_stopped() ? kExitInterrupted : 0;
}

}  // namespace

CliCommand run() {
  return {"run", "run one workload and say where the time went", [](CLI::App& app) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            app.add_option("workload", flags->workload, "name, as `weir list` shows it")->required();
            app.add_option("--streams", flags->streams, "number of streams (default: the workload's recommended)");
            app.add_option("--submit", flags->submit, "inline, threads[:k] or graph")->capture_default_str();
            flags->run.add_to(app);
            app.add_option("--output,-o", flags->output, "write the result (weir.result/1) to this file");
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
