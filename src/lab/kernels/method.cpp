#include "lab/kernels/method.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/named_values.h"
#include "lab/kernels/accuracy.h"
#include "lab/kernels/batch.h"
#include "lab/kernels/disturbance.h"
#include "lab/kernels/energy.h"
#include "lab/kernels/outliers.h"
#include "lab/kernels/stopping.h"
#include "lab/kernels/warmup.h"
#include "measure/statistics.h"

namespace weir::bench {
namespace {

struct SamplingPlan {
  std::uint64_t batch = 1;
  double run_ns = 0;               // approximate time of one run
  bool has_yardstick = false;      // on the CPU: runs it now and then
  bool is_ours = true;             // runs are done or launched by this thread
  double smallest_difference = 0;  // smallest difference, in ns per run, that the clock shows in a batch
};

struct Sampled {
  std::vector<double> samples_ns;
  std::vector<double> yardstick_ns;
  std::string stopped_by;  // iterations, interval, entropy, most_iterations, budget, stopped
  Json disturbed, clocks_mhz;
  std::vector<double> of_wall;      // by batch, for executables: device time as a fraction of the wall time
  std::vector<double> host_shares;  // by batch: time of the calls as a fraction of the device's time
};

constexpr int kYardsticksAtEnds = 3, kYardstickTries = 4;
// Measured time before the next yardstick, in multiples of its cost: it takes less than 5 %.
constexpr double kYardstickPause = 20;
// The most samples that may wait for the next look, if they are too short for time to pass.
constexpr std::size_t kMaxPending = 50;

// Runs the yardstick now and then, and restores the kernel's caches afterwards.
class YardstickTimes {
 public:
  YardstickTimes(package::ReadyKernel& kernel, const SamplingPlan& plan, const MethodOptions& options,
                 const Surroundings& surroundings)
      : kernel_(kernel), plan_(plan), is_cold_(options.is_cold), surroundings_(surroundings) {}

  void run(int times) {
    if (!plan_.has_yardstick) return;
    const std::int64_t begun = surroundings_.now_ns();
    for (int i = 0; i < times; ++i) times_ns.push_back(undisturbed());
    if (!is_cold_) {
      // The yardstick has evicted the kernel's data from the caches; without these runs, the next sample would pay for
      // that.
      const double fit = 1e6 / std::max(plan_.run_ns, 1.0);
      kernel_.run(std::min(plan_.batch, static_cast<std::uint64_t>(std::max(fit, 1.0))));
    }
    cost_ns_ = static_cast<double>(surroundings_.now_ns() - begun) / times;
    since_ns_ = 0;
  }
  void after_sample(double sample_ns) {
    since_ns_ += sample_ns;
    if (since_ns_ > kYardstickPause * cost_ns_) run(1);
  }

  std::vector<double> times_ns;

 private:
  // The yardstick measures the speed of the core, not how often others used it; after some tries the last time is
  // accepted.
  double undisturbed() {
    double ns = 0;
    for (int tries = 0; tries < kYardstickTries; ++tries) {
      const HostCounters before = surroundings_.counters(false);
      ns = surroundings_.yardstick_ns();
      if (!lost_the_core(before, surroundings_.counters(false), ns)) break;
    }
    return ns;
  }

  package::ReadyKernel& kernel_;
  const SamplingPlan& plan_;
  bool is_cold_;
  const Surroundings& surroundings_;
  double cost_ns_ = 0, since_ns_ = 0;
};

struct Attempt {
  double run_ns;
  std::string disturbed_by;
};

// Takes samples, one batch each, and repeats disturbed ones, until there are enough. Everything else happens between
// batches, never inside one.
Sampled take_samples(package::ReadyKernel& kernel, const SamplingPlan& plan, const MethodOptions& options,
                     const Surroundings& surroundings) {
  Sampled result;
  Stopping stopping(options, plan.smallest_difference);
  DisturbanceTally tally;
  YardstickTimes yardstick(kernel, plan, options, surroundings);
  yardstick.run(kYardsticksAtEnds);
  DisturbanceWatch watch(kernel, surroundings, plan.is_ours);
  const auto fewest = static_cast<std::size_t>(std::max(options.iterations, 1));
  // Not judged yet: telemetry read after some milliseconds applies to all of them.
  std::vector<Attempt> pending;
  const auto settle = [&](bool may_redo) {
    const std::string all = watch.look();
    for (const Attempt& attempt : pending) {
      const std::string& reason = attempt.disturbed_by.empty() ? all : attempt.disturbed_by;
      if (!result.stopped_by.empty()) return;  // enough: the remaining attempts are not used
      if (!reason.empty() && may_redo && !tally.is_usual() &&
          tally.redone_count() < std::max(fewest, result.samples_ns.size())) {
        tally.redone(reason, attempt.run_ns);
        continue;
      }
      if (reason.empty()) {
        tally.fine();
      } else {
        tally.kept(reason);
      }
      result.samples_ns.push_back(attempt.run_ns);
      if (options.on_sample) options.on_sample(attempt.run_ns);
      result.stopped_by = stopping.enough(result.samples_ns);
    }
    pending.clear();
  };

  const std::int64_t begun = surroundings.now_ns();
  while (result.stopped_by.empty()) {
    watch.before();
    const package::BatchTime time = options.is_cold ? kernel.run_cold() : kernel.run(plan.batch);
    pending.push_back({time.device_ns / static_cast<double>(plan.batch), watch.after(time.device_ns)});
    if (time.wall_ns && *time.wall_ns > 0) result.of_wall.push_back(time.device_ns / *time.wall_ns);
    if (time.device_ns > 0) result.host_shares.push_back(time.host_ns / time.device_ns);
    const bool is_stopped = options.is_stopped && options.is_stopped();
    const bool is_spent = static_cast<double>(surroundings.now_ns() - begun) >= 1e9 * options.budget_s;
    const bool may_be_enough = result.samples_ns.size() + pending.size() == fewest;
    if (is_stopped || is_spent || may_be_enough || watch.is_due() || pending.size() >= kMaxPending)
      settle(!is_stopped && !is_spent);
    if (result.stopped_by.empty() && is_stopped) result.stopped_by = "stopped";
    if (result.stopped_by.empty() && is_spent) result.stopped_by = "budget";
    if (result.stopped_by.empty()) yardstick.after_sample(time.device_ns);
  }
  yardstick.run(kYardsticksAtEnds);
  result.disturbed = tally.block();
  result.clocks_mhz = watch.clocks_block();
  result.yardstick_ns = std::move(yardstick.times_ns);
  return result;
}

// Launches that a driver accepts without waiting for the device; beyond this, the time of calls is the device's.
constexpr std::uint64_t kQueueDepth = 256;
constexpr double kLaunchBound = 0.9;

// Whether the device waits for the host's calls: they take as long as the device although its queue is not full.
// Samples show this if their launches fit into the queue; otherwise some shorter batches are run.
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
  return WEIR_NAMED(memory.peak_bytes, memory.allocated_bytes, text_or_null(memory.reason));
}

Json drift_block(const std::vector<double>& samples_ns) {
  const auto found = trend(samples_ns);
  if (!found) return nullptr;
  return WEIR_NAMED(found->change, found->p, found->is_clear);
}

}  // namespace

Json timing_block(const std::vector<double>& samples_ns) {
  const double mean_ns = mean(samples_ns);
  Json timing = {{"latency_ns",
                  {{"p50", number_or_null(quantile(samples_ns, 0.5))},
                   {"p90", number_or_null(quantile(samples_ns, 0.9))},
                   {"p99", number_or_null(quantile(samples_ns, 0.99))},
                   {"mean", number_or_null(mean_ns)},
                   {"std", number_or_null(standard_deviation(samples_ns))},
                   {"p50_interval", nullptr}}},
                 {"runs_per_s", number_or_null(1e9 / mean_ns)},
                 {"iterations", samples_ns.size()},
                 {"samples_ns", samples_ns},
                 {"outliers", outliers_block(classify_outliers(samples_ns))}};
  if (const auto intervals = summary_intervals(samples_ns))
    timing["latency_ns"]["p50_interval"] = {intervals->p50.low, intervals->p50.high};
  return timing;
}

MeasuredKernel measure(package::ReadyKernel& kernel, Precision precision, const MethodOptions& options,
                       const Ceilings* ceilings, const Surroundings& surroundings) {
  if (options.is_cold && !kernel.cold_reason().empty())
    fail("there are no cold runs: " + kernel.cold_reason(), "measure it without --cold");
  const bool is_host = kernel.device_name().starts_with("cpu");
  const auto is_stopped = [&] { return options.is_stopped && options.is_stopped(); };
  MeasuredKernel result;
  // Checked before timing: the time of a wrong kernel is useless, but is still reported.
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
  timing.update(WEIR_NAMED(result.batch, kernel.clock()));
  timing["resolution"] = number_or_null(plan.smallest_difference / run_ns);
  timing["stopped_by"] = sampled.stopped_by;
  timing["warmup_runs"] = warmup.runs;
  timing["is_steady"] = warmup.is_steady;
  timing["unsteady_reason"] = text_or_null(warmup.reason);
  timing["drift"] = drift_block(result.samples_ns);
  timing.update(WEIR_NAMED(std::move(sampled.disturbed), std::move(sampled.clocks_mhz), options.is_cold));
  timing["is_launch_bound"] = is_host || options.is_cold || is_stopped()
                                  ? Json(nullptr)
                                  : is_launch_bound(kernel, result.batch, std::move(sampled.host_shares));
  timing["of_wall"] = number_or_null(median(sampled.of_wall));
  const package::Work& work = kernel.work();
  timing["items_per_s"] = number_or_null(work.items ? *work.items * 1e9 / mean(result.samples_ns) : NAN);
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
  // Checked again after all these runs: a kernel that goes wrong with repetition has not passed.
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
