// weir queues cost: what sharing hardware queues costs a step, and the effect of other counts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/console.h"
#include "base/error.h"
#include "base/options.h"
#include "cli/list.h"
#include "cli/process.h"
#include "cli/queues_flags.h"
#include "cli/run_flags.h"
#include "lab/queues/queue_cost.h"
#include "lab/queues/queue_map.h"
#include "measure/statistics.h"
#include "report/text/documents.h"
#include "run/children.h"
#include "run/rounds.h"

namespace weir::cli {
namespace {

struct QueuesCostFlags {
  QueuesFlags shared;
  WorkloadFlags workload;
  std::string streams, scale, precision;
  std::string queues = "1,2,4,8,16,32", submit = "inline", placement = "natural";
  std::string iterations = "50", warmup = "10", seed = "1";
  std::vector<std::string> params;
  std::string profile;
  std::string processes = "3";
  bool verifies = false, verifies_all = false;

  void add_to(CommandSyntax syntax) {
    workload.add_to(syntax);
    syntax.add("--streams N", streams, "number of streams (default: the workload's recommended)");
    syntax.add("--queues N", queues, "queue counts to predict for");
    syntax.add("--verify", verifies, "run the step again with the advised count, in a new process");
    syntax.add("--verify-all", verifies_all, "the same with every count of --queues");
    syntax.add("--processes N", processes, "processes that measure a step, of which the median counts (0: this one)");
    syntax.add("--save-profile PATH", profile,
               "write the calibrated device to this file (YAML), for --device sim:FILE");
    syntax.add("--scale NAME", scale, "tiny, small or full (default: full on a GPU, small elsewhere)");
    syntax.add("--param NAME=VALUE", params, "name=value, repeatable; `weir list -v` shows the names");
    syntax.add("--precision NAME", precision, "fp32, tf32, fp16, bf16, fp8_e4m3 or fp8_e5m2 (default: the workload's)");
    syntax.add("--submit NAME", submit, "inline, threads[:k], graph or channel[:mpsc[:k]]");
    syntax.add("--placement NAME", placement, "natural, serial, round_robin or critical_path");
    syntax.add("--iterations N", iterations, "measured iterations");
    syntax.add("--warmup N", warmup, "iterations before measuring");
    syntax.add("--seed N", seed, "seed of all data");
    shared.add_to(syntax);
  }
};

RunRequest request_of(const QueuesCostFlags& flags) {
  RunFlags run;
  run.iterations = flags.iterations;
  run.warmup = flags.warmup;
  run.placement = flags.placement;
  run.scale = flags.scale;
  run.precision = flags.precision;
  run.params = flags.params;
  run.seed = flags.seed;
  RunRequest request = run.request();
  request.submit = parse_submit(flags.submit);
  flags.workload.choose(request);
  const Workload& workload = workload_of(request);
  if (!flags.streams.empty())
    request.streams = one_count("--streams", flags.streams, workload.streams.min, workload.streams.max);
  return request;
}

// Measures the step in separate processes: drivers read the number of queues once, and random effects last as long as a
// process. Without `queues`: as the device is now. Empty where it was interrupted.
std::optional<MeasuredStep> measure_elsewhere(const QueuesCostFlags& flags, const DeviceInfo& info,
                                              const RunRequest& request, std::optional<int> queues, int processes,
                                              ProgressLine* line) {
  FlagValues values = {
      {"--device", child_device(info, flags.shared.device)}, {"--streams", flags.streams}, {"--scale", flags.scale}};
  for (const auto& [name, value] : request.params) values.emplace_back("--param", name + "=" + value);
  // It would override the count that is to be measured.
  for (const std::string& setting : flags.shared.sim)
    if (!queues || !setting.starts_with("queues=")) values.emplace_back("--sim", setting);
  values.insert(values.end(), {{"--iterations", flags.iterations},
                               {"--warmup", flags.warmup},
                               {"--precision", flags.precision},
                               {"--submit", flags.submit},
                               {"--placement", flags.placement},
                               {"--seed", flags.seed},
                               {"--compute-units", flags.shared.compute_units}});
  ChildRequest child;
  child.arguments = run_words(flags.workload, values, true);
  if (queues) {
    queue_setting(info).apply(*queues, child);
  } else if (!flags.shared.hardware_queues.empty()) {
    child.arguments.push_back("--hw-queues=" + flags.shared.hardware_queues);
  }
  std::vector<std::pair<double, double>> found;  // step and submit, by process
  for (int i = 0; i < processes; ++i) {
    if (line != nullptr) line->show("measure the step in processes of its own", i, processes);
    const std::optional<Json> result = child_document(child, catch_interrupts());
    if (!result) return std::nullopt;
    const Json& seen = (*result)["device"]["hardware_queues"];
    if (queues && seen.is_number() && seen.get<int>() != *queues)
      fail(fmt::format("{}: the process saw {} queues", queue_setting(info).text(*queues), seen.get<int>()));
    found.emplace_back((*result)["metrics"]["latency_ns"]["p50"].get<double>(),
                       median((*result)["samples"]["submit_ns"].get<std::vector<double>>()));
  }
  std::sort(found.begin(), found.end());
  MeasuredStep measured;
  std::tie(measured.step_ns, measured.submit_ns) = found[found.size() / 2];
  for (const auto& [step_ns, submit_ns] : found) measured.process_ns.push_back(step_ns);
  return measured;
}

// Virtual time does not vary between processes.
int processes_of(const QueuesCostFlags& flags, const DeviceInfo& info) {
  return info.is_virtual ? 1 : std::max(1, one_count("--processes", flags.processes, 0, 100));
}

// Compares predictions with the step in new processes. A machine drifts by more than counts differ, so that each round
// has a process for the present setting too: what is measured is the ratio to that, times the step as calibrated.
Json verify(const QueuesCostFlags& flags, const DeviceInfo& info, const RunRequest& request, const QueueCost& cost,
            ProgressLine& line) {
  // Side 0 is the present setting.
  std::vector<std::optional<int>> sides = {std::nullopt};
  for (const QueueCost::Prediction& prediction : cost.predictions)
    if (flags.verifies_all || prediction.queues == cost.advised.value_or(cost.queues_now))
      sides.emplace_back(prediction.queues);
  const int rounds = processes_of(flags, info);
  std::vector<std::vector<double>> measured_ns(sides.size());  // by round
  std::size_t done = 0;
  const auto run = [&](std::size_t side, std::size_t) {
    line.show(sides[side] ? fmt::format("verify {} queues", *sides[side]) : "measure the present setting again",
              static_cast<int>(done++), rounds * static_cast<int>(sides.size()));
    const auto measured = measure_elsewhere(flags, info, request, sides[side], 1, nullptr);
    if (measured) measured_ns[side].push_back(measured->step_ns);
    return measured.has_value();
  };
  if (sides.size() > 1)
    run_rounds({.sides = sides.size(),
                .max_rounds = static_cast<std::size_t>(rounds),
                .seed = static_cast<std::uint64_t>(request.seed)},
               {.run = run}, catch_interrupts());
  std::map<int, std::vector<double>> process_ns, ratios;
  for (std::size_t side = 1; side < sides.size(); ++side)
    for (std::size_t i = 0; i < std::min(measured_ns[side].size(), measured_ns[0].size()); ++i) {
      process_ns[*sides[side]].push_back(measured_ns[side][i]);
      ratios[*sides[side]].push_back(measured_ns[side][i] / measured_ns[0][i]);
    }
  const double step_ns = cost.document["cost"]["measured"]["step_ns"].get<double>();
  Json found = Json::array();
  for (const QueueCost::Prediction& prediction : cost.predictions) {
    if (!process_ns.contains(prediction.queues)) continue;
    const double from_ratio_ns = step_ns * median(ratios[prediction.queues]);
    found.push_back({{"queues", prediction.queues},
                     {"setting", queue_setting(info).text(prediction.queues)},
                     {"predicted_ns", or_null(prediction.step_ns)},
                     {"measured_ns", from_ratio_ns},
                     {"process_ns", process_ns[prediction.queues]},
                     {"error", prediction.step_ns ? Json(*prediction.step_ns / from_ratio_ns - 1) : Json()}});
  }
  return found;
}

int cost_of_queues(const QueuesCostFlags& flags) {
  CostRequest request;
  request.run = request_of(flags);
  parse_counts("--queues", flags.queues, 1, 127);  // rejects, before anything is opened
  flags.shared.check_output();
  if (!flags.profile.empty()) check_writable(flags.profile, flags.shared.is_forced);
  one_count("--processes", flags.processes, 0, 100);  // rejects, before anything is opened
  auto device = flags.shared.open(probed_streams(0));
  const DeviceInfo info = device->info();
  request.queues = parse_counts("--queues", flags.queues, 1, queue_setting(info).most);
  RunControl control;
  control.stop = &catch_interrupts();
  ProgressLine line(flags.shared.is_quiet);
  control.progress = [&](std::string_view phase, int done, int total) { line.show(phase, done, total); };
  ProbeOptions probe;
  probe.streams = probed_streams(0);
  probe.stop = control.stop;
  probe.progress = control.progress;
  request.probe = probe_queues(*device, probe);
  if (control.is_stopped()) return kExitInterrupted;
  device.reset();  // gives the children the device to themselves
  if (!info.is_virtual && one_count("--processes", flags.processes, 0, 100) > 0) {
    request.measured = measure_elsewhere(flags, info, request.run, std::nullopt, processes_of(flags, info), &line);
    if (!request.measured) return kExitInterrupted;
  }
  device = flags.shared.open_as_usual();
  QueueCost cost = price_queues(*device, request, run_context(), control);
  device.reset();
  if (flags.verifies || flags.verifies_all) {
    Json verified = verify(flags, info, request.run, cost, line);
    if (verified.empty()) {
      cost.document["unavailable"]["cost.verification"] =
          catch_interrupts().load() ? "interrupted before the first round ended"
                                    : "--queues does not have the count to verify; --verify-all takes all that it has";
    } else {
      cost.document["cost"]["verification"] = std::move(verified);
      cost.document["unavailable"].erase("cost.verification");
    }
  }
  line.clear();
  if (!flags.profile.empty()) write_file(flags.profile, sim::to_yaml(cost.profile), flags.shared.is_forced);
  flags.shared.deliver(cost.document, describe_queue_cost(cost.document));
  if (!flags.profile.empty() && !flags.shared.is_quiet && !flags.shared.document.prints_json())
    print_out("\nThe calibrated device is in {}: --device sim:{} runs on it.\n", flags.profile, flags.profile);
  return control.is_stopped() ? kExitInterrupted : 0;
}

int execute_queues_cost(const QueuesCostFlags& flags) {
  try {
    return cost_of_queues(flags);
  } catch (const Interrupted&) {
    return kExitInterrupted;
  }
}

}  // namespace

CliCommand queues_cost() {
  return command("cost", "what sharing queues costs a step, and what other counts would do", execute_queues_cost);
}

}  // namespace weir::cli
