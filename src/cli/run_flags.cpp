#include "cli/run_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/options.h"
#include "cli/flag_values.h"
#include "cli/hang.h"
#include "cli/process.h"
#include "cli/ranks.h"
#include "cli/ready_files.h"
#include "cli/scheduled.h"
#include "step/workload/yaml.h"

namespace weir::cli {
namespace {

std::int64_t number(const char* flag, const std::string& text, std::int64_t lowest, std::int64_t highest) {
  return whole_number(flag, text, lowest, highest, parse_integer(text) ? "out of range" : "not a whole number");
}

Precision known_precision(const std::string& name) {
  if (const auto precision = precision_named(name)) return *precision;
  std::vector<std::string> names;
  for (const Precision known : kCataloguePrecisions) names.emplace_back(name_of(known));
  reject(fmt::format("--precision {}: there is no such precision", name), suggestion(name, names));
}

}  // namespace

void RunFlags::add_to(CommandSyntax syntax) {
  syntax.add("--device NAME", device,
             "auto, cpu, null, cuda:0, hip:0, opencl:0, sim:h200 (auto: the first GPU, else cpu)");
  syntax.add("--iterations N", iterations, "measured iterations");
  syntax.add("--warmup N", warmup, "iterations before measuring");
  syntax.add("--sync-mode NAME", sync_mode, "per_iteration, end_only or none");
  syntax.add("--placement NAME", placement, "natural, serial, round_robin or critical_path");
  syntax.add("--scale NAME", scale, "tiny, small or full (default: full on a GPU, small elsewhere)");
  syntax.add("--precision NAME", precision, "fp32, tf32, fp16, bf16, fp8_e4m3 or fp8_e5m2 (default: the workload's)");
  syntax.add("--param NAME=VALUE", params, "name=value, repeatable; `weir list -v` shows the names");
  syntax.add("--seed N", seed, "seed of all data");
  syntax.add("--hw-queues N", hardware_queues, "hardware queues of the devices cpu (default 8) and sim");
  syntax.add("--compute-units N", compute_units, "compute units that each stream is confined to (AMD and NVIDIA GPUs)");
  syntax.add("--sim NAME=VALUE", sim, "name=value, repeatable: a setting of the simulated device (docs/sim.md)");
  syntax.add("--ranks N", ranks, "start this many processes under mpirun (default: as the launcher did, else one)");
  syntax.add("--hang-timeout DURATION", hang_timeout,
             "after this long without any progress, say where the run stands and end: 60s (default: never)");
  syntax.add("--no-check", skips_check, "do not compare the output with the CPU reference");
  syntax.add("--no-trace", skips_trace, "leave out the traced pass (concurrency, fairness, convoy, queue switch)");
  syntax.add("--quiet,-q", is_quiet, "print nothing but errors");
  syntax.add("--force,-f", is_forced, "replace existing output files");
}

RunRequest RunFlags::request() const {
  RunRequest request;
  request.iterations = static_cast<int>(number("--iterations", iterations, 1, 10'000'000));
  request.warmup = static_cast<int>(number("--warmup", warmup, 0, 10'000'000));
  request.sync = sync_mode_named(sync_mode);
  hang_timeout_ns(hang_timeout);  // rejects
  request.placement = &placement_named(placement);
  if (!scale.empty()) request.scale = scale_named(scale);
  if (!precision.empty()) request.precision = known_precision(precision);
  request.seed = static_cast<std::uint64_t>(number("--seed", seed, 0, INT64_MAX));
  for (const std::string& param : params) request.params.push_back(parse_assignment("--param", param));
  request.checks_output = !skips_check;
  request.traces = !skips_trace;
  return request;
}

void WorkloadFlags::add_to(CommandSyntax syntax, const std::string& help) {
  syntax.add("workload NAME", name, help);
  syntax.add("--file PATH", file, "read the workload from this YAML file (docs/yaml.md)");
}

void WorkloadFlags::choose(RunRequest& request) const {
  if (name.empty() && file.empty())
    reject("a workload is required", "Name one that `weir list` shows, or give --file my.yaml.");
  if (name.ends_with(".yaml") || name.ends_with(".yml"))
    reject(fmt::format("{}: is a file, not the name of a workload", name), fmt::format("Write --file {}.", name));
  if (name.ends_with(".json"))
    reject(fmt::format("{}: is a file, not the name of a workload", name),
           "Name a workload that `weir list` shows. `weir report FILE` shows a result, `weir analyze FILE` a trace.");
  if (name.size() == 2 && name[0] == 'P')
    reject(fmt::format("there is no class '{}' of workloads", name), "Use P0, P1, P2, P3 or all, for `weir run`.");
  if (!name.empty() && !file.empty())
    reject(fmt::format("--file {}: the workload '{}' is named as well", file, name), "Give one of them.");
  request.workload = name;
  if (file.empty()) return;
  request.loaded = std::make_shared<const Workload>(load_workload(config_file(file)));
  request.workload = request.loaded->name;
}

std::unique_ptr<Device> RunFlags::open(Communicator* communicator) const {
  return open_confined(one_unit_count(compute_units), communicator);
}

DeviceInfo RunFlags::info(int units) const {
  DeviceOptions options = device_options(hardware_queues, sim);
  options.compute_units = units;
  return open_able(device, options)->info();
}

std::unique_ptr<Device> RunFlags::open_confined(int units, Communicator* communicator) const {
  DeviceOptions options = device_options(hardware_queues, sim, communicator);
  options.compute_units = units;
  const auto open = [&] { return open_able(device, options); };
  // A process that only starts ranks runs nothing itself.
  return must_start_ranks(ranks) ? open() : open_scheduled(open, communicator, is_quiet);
}

std::vector<std::string> run_words(const WorkloadFlags& workload, const FlagValues& flags, bool skips_check,
                                   bool skips_trace) {
  std::vector<std::string> words = {"run"};
  if (!workload.name.empty()) words.push_back(workload.name);
  if (!workload.file.empty()) words.push_back("--file=" + workload.file);
  for (const auto& [flag, value] : flags)
    if (!value.empty()) words.push_back(fmt::format("{}={}", flag, value));
  if (skips_check) words.emplace_back("--no-check");
  if (skips_trace) words.emplace_back("--no-trace");
  return words;
}

ChildRequest child_run(const RunFlags& flags, const WorkloadFlags& workload, const DeviceInfo& info,
                       const std::string& streams, const std::string& submit, int compute_units, bool skips_trace) {
  // Each rank finds its own device by the name as it was given.
  FlagValues values = {{"--device", flags.ranks.empty() ? child_device(info, flags.device) : flags.device},
                       {"--streams", streams},
                       {"--submit", submit},
                       {"--iterations", flags.iterations},
                       {"--warmup", flags.warmup},
                       {"--sync-mode", flags.sync_mode},
                       {"--placement", flags.placement},
                       {"--scale", flags.scale},
                       {"--precision", flags.precision},
                       {"--seed", flags.seed},
                       {"--hw-queues", flags.hardware_queues},
                       {"--compute-units", compute_units == 0 ? "" : std::to_string(compute_units)},
                       {"--ranks", flags.ranks},
                       {"--hang-timeout", flags.hang_timeout}};
  for (const std::string& param : flags.params) values.emplace_back("--param", param);
  for (const std::string& setting : flags.sim) values.emplace_back("--sim", setting);
  ChildRequest child;
  child.arguments = run_words(workload, values, flags.skips_check, skips_trace || flags.skips_trace);
  child.limit_ns = kNoChildLimit;
  return child;
}

int one_unit_count(const std::string& text) {
  return text.empty() ? 0 : one_count("--compute-units", text, 1, kMaxComputeUnits, "`weir sweep` runs several.");
}

int one_stream_count(const std::string& text, const Workload& workload, const std::string& hint) {
  return one_count("--streams", text, workload.streams.min, workload.streams.max, hint);
}

DeviceOptions device_options(const std::string& hardware_queues, const std::vector<std::string>& sim,
                             Communicator* communicator) {
  DeviceOptions options;
  options.communicator = communicator;
  if (communicator != nullptr)
    options.workers =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / communicator->local_ranks().count);
  if (!hardware_queues.empty())
    options.hardware_queues = static_cast<int>(number("--hw-queues", hardware_queues, 1, kMaxStreams));
  options.variable = [](const char* name) { return environment_variable(name); };
  for (const std::string& setting : sim) options.sim.push_back(parse_assignment("--sim", setting));
  return options;
}

}  // namespace weir::cli
