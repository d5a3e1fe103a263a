#include "lab/kernels/method.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "lab/kernels/accuracy.h"
#include "lab/kernels/batch.h"
#include "lab/kernels/energy.h"
#include "lab/kernels/sampling.h"
#include "lab/kernels/warmup.h"
#include "measure/statistics.h"

namespace weir::bench {
namespace {

// Launches that a driver takes without waiting for the device; beyond, the time of calls is the device's.
constexpr std::uint64_t kQueueDepth = 256;
constexpr double kLaunchBound = 0.9;

// Whether the device waits for the host's calls: they take as long as the device does, though its queue is not full.
// Samples say so where their launches fit into the queue; else some shorter batches do.
Json is_launch_bound(package::ReadyKernel& kernel, std::uint64_t batch, std::vector<double> host_shares) {
  const std::uint64_t launches = std::max<std::uint64_t>(1, kernel.launches_per_run().value_or(8));
  const std::uint64_t runs = std::max<std::uint64_t>(1, kQueueDepth / launches);
  if (batch > runs) {
    host_shares.clear();
    for (int i = 0; i < 3; ++i) {
      const package::BatchTime time = kernel.run(runs);
      if (time.device_ns > 0) host_shares.push_back(time.host_ns / time.device_ns);
    }
  }
  if (host_shares.empty()) return nullptr;
  return median(host_shares) >= kLaunchBound;
}

Json memory_block(const package::KernelMemory& memory) {
  const auto megabytes = [](const std::optional<std::uint64_t>& bytes) {
    return bytes ? Json(static_cast<double>(*bytes) / 1e6) : Json(nullptr);
  };
  return {{"peak_mb", megabytes(memory.peak_bytes)},
          {"allocated_mb", megabytes(memory.allocated_bytes)},
          {"reason", memory.reason.empty() ? Json(nullptr) : Json(memory.reason)}};
}

Json drift_block(const std::vector<double>& samples_ns) {
  const auto found = trend(samples_ns);
  if (!found) return nullptr;
  return {{"change", found->change}, {"p", found->p}, {"is_clear", found->is_clear}};
}

}  // namespace

Measurement measure(package::ReadyKernel& kernel, Precision precision, const MethodOptions& options,
                    const Ceilings* ceilings, const Surroundings& surroundings) {
  if (options.is_cold && !kernel.cold_reason().empty())
    fail("there are no cold runs: " + kernel.cold_reason(), "measure it without --cold");
  const bool is_host = kernel.device_name().starts_with("cpu");
  const auto is_stopped = [&] { return options.is_stopped && options.is_stopped(); };
  Measurement result;
  // Before anything is timed: what a kernel that computes nonsense takes is of no use, but is said all the same.
  Accuracy accuracy = judge_accuracy(kernel.check(), precision, options.tolerance);

  const WarmUp warmup = warm_up(kernel, is_host, options, surroundings);
  const double resolution_ns = kernel.resolution_ns();
  if (!options.is_cold)
    result.batch = find_batch(warmup.run_ns, batch_goal(resolution_ns, is_host, options.budget_s, options.iterations),
                              [&](std::uint64_t count) { return kernel.run(count).device_ns; });

  const SamplingPlan plan{.batch = result.batch,
                          .run_ns = warmup.run_ns,
                          .has_yardstick = is_host,
                          .is_ours = kernel.how() != "executable",
                          .smallest_difference = resolution_ns / static_cast<double>(result.batch)};
  Sampled sampled = take_samples(kernel, plan, options, surroundings);
  result.samples_ns = std::move(sampled.samples_ns);
  result.yardstick_ns = std::move(sampled.yardstick_ns);
  const double run_ns = median(result.samples_ns);

  Json& timing = result.timing;
  timing = timing_block(result.samples_ns);
  timing["batch"] = result.batch;
  timing["clock"] = kernel.clock();
  timing["resolution"] = number_or_null(plan.smallest_difference / run_ns);
  timing["stopped_by"] = sampled.stopped_by;
  timing["warmup_runs"] = warmup.runs;
  timing["is_steady"] = warmup.is_steady;
  timing["unsteady_reason"] = warmup.reason.empty() ? Json(nullptr) : Json(warmup.reason);
  timing["drift"] = drift_block(result.samples_ns);
  timing["disturbed"] = std::move(sampled.disturbed);
  timing["clocks_mhz"] = std::move(sampled.clocks_mhz);
  timing["is_cold"] = options.is_cold;
  timing["is_launch_bound"] = is_host || options.is_cold || is_stopped()
                                  ? Json(nullptr)
                                  : is_launch_bound(kernel, result.batch, std::move(sampled.host_shares));
  timing["of_wall"] = number_or_null(median(sampled.of_wall));
  const package::Work& work = kernel.work();
  timing["items_per_sec"] = number_or_null(work.items ? *work.items * 1e9 / mean(result.samples_ns) : NAN);
  timing["item_name"] = work.items && !work.item_name.empty() ? Json(work.item_name) : Json(nullptr);
  result.roofline = roofline(work, precision, run_ns / 1e9, ceilings);

  if (!options.measures_energy)
    result.energy = no_energy("not asked for");
  else if (options.is_cold)
    result.energy = no_energy("cold runs do not follow each other closely, so a counter would see the pauses");
  else if (is_stopped())
    result.energy = no_energy("stopped before it");
  else
    result.energy = measure_energy(kernel, surroundings,
                                   {.run_ns = run_ns,
                                    .is_host = is_host,
                                    .limit_s = std::min(4.0, options.budget_s / 2),
                                    .is_stopped = options.is_stopped});
  result.memory = memory_block(kernel.memory());
  // Again, after all these runs: a kernel that goes wrong with repetition has not passed.
  if (!is_stopped())
    accuracy = worse_of(std::move(accuracy), judge_accuracy(kernel.check(), precision, options.tolerance));
  else
    accuracy.block["checked"] = "before measuring";
  result.is_accurate = accuracy.is_accurate;
  result.inaccuracy = std::move(accuracy.inaccuracy);
  result.accuracy = std::move(accuracy.block);
  return result;
}

}  // namespace weir::bench
