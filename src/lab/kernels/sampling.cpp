#include "lab/kernels/sampling.h"

#include <algorithm>

#include "lab/kernels/stopping.h"

namespace weir::bench {
namespace {

constexpr int kYardsticksAtEnds = 3, kYardstickTries = 4;
// Measured time before the next yardstick, in costs of one: less than 5 % goes into it.
constexpr double kYardstickPause = 20;
// Samples that may wait for the next look, where they are too short for time to pass.
constexpr std::size_t kMostPending = 50;

// A yardstick now and then, and the caches given back to the kernel.
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
      // It has pushed the kernel's data out of the caches, which the next sample would pay for.
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
  // It is to say how fast the core is, not how often others had it; after some tries it is taken as it is.
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

}  // namespace

Sampled take_samples(package::ReadyKernel& kernel, const SamplingPlan& plan, const MethodOptions& options,
                     const Surroundings& surroundings) {
  Sampled result;
  Stopping stopping(options, plan.smallest_difference);
  DisturbanceTally tally;
  YardstickTimes yardstick(kernel, plan, options, surroundings);
  yardstick.run(kYardsticksAtEnds);
  DisturbanceWatch watch(kernel, surroundings, plan.is_ours);
  const auto fewest = static_cast<std::size_t>(std::max(options.iterations, 1));
  // Not judged yet: what telemetry says after some milliseconds holds for all of them.
  std::vector<Attempt> pending;
  const auto settle = [&](bool may_redo) {
    const std::string all = watch.look();
    for (const Attempt& attempt : pending) {
      const std::string& reason = attempt.disturbed_by.empty() ? all : attempt.disturbed_by;
      if (!result.stopped_by.empty()) return;  // enough: the rest of this stretch is left over
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
    if (is_stopped || is_spent || may_be_enough || watch.is_due() || pending.size() >= kMostPending)
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

}  // namespace weir::bench
