// weir run-priority: all workloads of a class, each as one run or as a small sweep. Goes on past a failure.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/options.h"
#include "cli/export_flags.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/run_flags.h"
#include "cli/submit_flags.h"
#include "cli/sweep_output.h"

namespace weir::cli {
namespace {

struct Flags {
  RunFlags run;
  std::string priority;
  std::string streams;
  SubmitFlags submit;
  std::string folder = "results";
  ExportFlags exports;
  bool resumes = false;
};

std::vector<const Workload*> chosen_workloads(const std::string& priority) {
  const std::array<std::string, 5> names = {"P0", "P1", "P2", "P3", "all"};
  if (std::find(names.begin(), names.end(), priority) == names.end())
    reject(fmt::format("run-priority {}: there is no such class", priority), "Use P0, P1, P2, P3 or all.");
  std::vector<const Workload*> chosen;
  for (const Workload& workload : workloads())
    if (priority == "all" || priority == fmt::format("P{}", workload.priority)) chosen.push_back(&workload);
  if (chosen.empty())
    reject(fmt::format("run-priority {}: no workload has that class yet", priority), "`weir list` shows them.");
  return chosen;
}

int execute(const Flags& flags) {
  rank_count(flags.run.ranks);  // rejects
  if (speaks()) flags.exports.check(flags.run.is_forced);
  const bool is_starter = must_start_ranks(flags.run.ranks);
  const RunRequest base = flags.run.request();
  const std::vector<const Workload*> chosen = chosen_workloads(flags.priority);
  std::vector<int> counts;
  if (!flags.streams.empty()) counts = parse_counts("--streams", flags.streams, 1, kMaxStreams);
  const std::filesystem::path folder = flags.folder;
  Communicator* const ranks = is_starter ? nullptr : join_ranks();
  std::error_code status;
  if (speaks()) std::filesystem::create_directories(folder, status);
  if (status) reject(fmt::format("--output-dir {}: {}", flags.folder, status.message()));

  // All paths are checked before anything runs: an hour of work must not end in "exists already".
  std::vector<SweepRequest> requests;
  for (const Workload* workload : chosen) {
    SweepRequest request;
    request.run = base;
    request.run.workload = workload->name;
    request.submits = flags.submit.ways();
    request.streams = {workload->streams.recommended};
    if (!counts.empty()) request.streams = fitting_counts(*workload, counts);
    if (request.streams.empty()) continue;
    request.output = folder / (workload->name + ".json");
    request.resumes = flags.resumes;
    request.compute_units = {one_unit_count(flags.run.compute_units)};
    request.overwrites = flags.run.is_forced;
    if (speaks()) check_writable(request.output, request.overwrites || request.resumes);
    requests.push_back(std::move(request));
  }
  if (requests.empty())
    reject(fmt::format("--streams {}: no workload of {} runs on that", flags.streams, flags.priority));
  if (is_starter) {
    const int count = rank_count(flags.run.ranks);
    const DeviceInfo info = flags.run.open()->info();
    for (const SweepRequest& request : requests) check_sweep(info, request, {0, count});
    return start_ranks(count);
  }
  auto device = flags.run.open(ranks);
  watch_ranks();
  std::vector<std::string> failed;
  bool is_interrupted = false;
  for (const SweepRequest& request : requests) {
    int code = 0;
    try {
      code = print_sweep(*device, request, flags.run, ranks);
    } catch (const Error& error) {
      if (ranks != nullptr) throw;
      std::fflush(stdout);
      fmt::print(stderr, "weir: {}: {}\n      {}\n", request.run.workload, error.what(), error.hint);
      code = static_cast<int>(Fault::run);
    }
    is_interrupted = code == kExitInterrupted;
    if (is_interrupted) break;
    if (code != 0) failed.push_back(request.run.workload);
  }
  device.reset();
  leave_ranks();
  if (speaks() && flags.exports.is_asked()) {
    std::vector<Json> sweeps;
    std::error_code ignored;
    for (const SweepRequest& request : requests)
      if (std::filesystem::exists(request.output, ignored)) sweeps.push_back(read_json(request.output));
    flags.exports.write(sweeps, flags.run.is_forced);
  }
  if (is_interrupted) return kExitInterrupted;
  if (failed.empty() || !speaks()) return 0;
  std::fflush(stdout);
  std::string names;
  for (const std::string& name : failed) names += " " + name;
  fmt::print(stderr, "weir: {} of {} workloads failed:{}\n", failed.size(), requests.size(), names);
  return static_cast<int>(Fault::run);
}

}  // namespace

CliCommand run_priority() {
  return {"run-priority", "run all workloads of a class: P0, P1, P2, P3 or all",
          [](CLI::App& app) -> std::function<int()> {
            const auto flags = std::make_shared<Flags>();
            app.add_option("class", flags->priority, "P0, P1, P2, P3 or all")->required();
            app.add_option("--streams", flags->streams, "counts (default: each workload's recommended one)");
            flags->submit.add_to(app, true);
            flags->run.add_to(app);
            app.add_option("--output-dir", flags->folder, "folder for one file per workload")->capture_default_str();
            flags->exports.add_to(app);
            app.add_flag("--resume", flags->resumes, "keep the points that the files have, run the others");
            return [flags] { return execute(*flags); };
          }};
}

}  // namespace weir::cli
