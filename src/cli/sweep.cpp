// weir sweep: one workload over stream counts, submit modes, parts of the device and variables of the environment.
#include <fmt/format.h>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/default_output.h"
#include "cli/document_output.h"
#include "cli/export_flags.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/process_flags.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "cli/submit_flags.h"
#include "cli/sweep_output.h"

namespace weir::cli {
namespace {

struct SweepFlags {
  RunFlags run;
  WorkloadFlags workload;
  std::string streams;
  SubmitFlags submit;
  VariableFlags variables;
  ProcessFlags processes;
  DocumentFile document;
  ExportFlags exports;
  bool resumes = false;

  void add_to(CommandSyntax syntax) {
    workload.add_to(syntax);
    syntax.add("--streams N", streams, "counts: 1,2,4,8 or 1..64:x2 (default: doubling up to 32)");
    submit.add_to(syntax, true);
    variables.add_to(syntax);
    run.add_to(syntax);
    processes.add_to(syntax);
    document.add_to(syntax, "file (default: results/sweep-WORKLOAD-DEVICE.json)");
    exports.add_to(syntax);
    syntax.add("--resume", resumes, "skip points already measured");
  }
};

// Doubles from the smallest to the largest count that the workload accepts, at most 32.
std::vector<int> usual_counts(const Workload& workload) {
  std::vector<int> counts;
  for (int n = workload.streams.min; n <= std::min(32, workload.streams.max); n *= 2) counts.push_back(n);
  return counts;
}

std::filesystem::path output_of(const SweepFlags& flags, const Workload& workload, const DeviceInfo& info) {
  if (const std::string path = flags.document.path(); !path.empty()) return path;
  if (is_first_rank()) make_folders("results");
  std::string name = info.name;
  std::replace(name.begin(), name.end(), ':', '-');
  return default_output(fmt::format("results/sweep-{}-{}", workload.name, name), ".json",
                        earlier_output(flags.run.is_forced, flags.resumes));
}

// The file also has the points kept from an earlier sweep.
void write_others(const SweepFlags& flags, const SweepRequest& request) {
  if (!flags.exports.is_asked() && !flags.document.prints_json()) return;
  const Json sweep = read_json(request.output);
  flags.exports.write({&sweep, 1}, flags.run.is_forced);
  if (flags.document.prints_json()) write_json(to_text(sweep));
}

// Every point in several processes, in random order within each round.
int sweep_processes(const SweepFlags& flags, SweepRequest request) {
  for (const int units : request.compute_units) flags.run.info(units);  // rejects a count that the device does not have
  const DeviceInfo info = flags.run.info(request.compute_units.front());
  request.ranks = rank_count(flags.run.ranks);
  check_sweep(info, request, {0, request.ranks});
  request.output = output_of(flags, workload_of(request.run), info);
  const int code = print_sweep(info, nullptr, request, flags.run, flags.run.is_quiet || flags.document.prints_json(),
                               nullptr, nullptr, [&](const SweepPoint& point, bool traces) {
                                 ChildRequest child =
                                     child_run(flags.run, flags.workload, info, std::to_string(point.streams),
                                               point.submit.name, point.compute_units, !traces);
                                 apply(point.variables, child);
                                 return run_child(child, catch_interrupts());
                               });
  write_others(flags, request);
  return code;
}

int execute_sweep(const SweepFlags& flags) {
  const bool is_quiet = flags.run.is_quiet || flags.document.prints_json();
  rank_count(flags.run.ranks);  // rejects
  if (is_first_rank()) flags.exports.check(flags.run.is_forced);
  SweepRequest request;
  request.run = flags.run.request();
  flags.workload.choose(request.run);
  const Workload& workload = workload_of(request.run);
  request.streams = flags.streams.empty()
                        ? usual_counts(workload)
                        : fitting_counts(workload, parse_counts("--streams", flags.streams, 1, kMaxStreams));
  if (request.streams.empty())
    reject(fmt::format("--streams {}: {} runs on {} to {} streams", flags.streams, workload.name, workload.streams.min,
                       workload.streams.max));
  request.submits = flags.submit.ways();
  if (!flags.run.compute_units.empty())
    request.compute_units = parse_counts("--compute-units", flags.run.compute_units, 1, kMaxComputeUnits);
  request.resumes = flags.resumes;
  request.overwrites = flags.run.is_forced;
  request.processes = flags.processes.count();
  request.variables = flags.variables.axes();
  if (request.uses_processes()) return sweep_processes(flags, request);
  if (must_start_ranks(flags.run.ranks)) {
    const int count = rank_count(flags.run.ranks);
    check_sweep(flags.run.open_confined(request.compute_units.front())->info(), request, {0, count});
    return start_ranks(count);
  }
  Communicator* const ranks = join_ranks();
  // Opens the largest count briefly, so that a count that the device does not have is rejected before anything runs.
  if (request.compute_units.size() > 1) flags.run.open_confined(request.compute_units.back(), ranks);
  auto device = flags.run.open_confined(request.compute_units.front(), ranks);
  request.output = output_of(flags, workload, device->info());
  if (ranks != nullptr) check_sweep(device->info(), request, ranks->ranks());
  watch_ranks();
  const int code =
      print_sweep(device->info(), device.get(), request, flags.run, is_quiet, ranks, [&](int units) -> Device& {
        device.reset();
        device = flags.run.open_confined(units, ranks);
        return *device;
      });
  device.reset();
  leave_ranks();
  if (!is_first_rank()) return 0;
  write_others(flags, request);
  return code;
}

}  // namespace

CliCommand sweep() {
  return command("sweep", "run a workload over streams, ways of submitting, parts of the device and variables",
                 execute_sweep);
}

}  // namespace weir::cli
