#include "lab/kernels/batch.h"

#include <algorithm>
#include <cmath>

namespace weir::bench {
namespace {

std::uint64_t runs_within(double runs) {
  // Written so that NaN gives the fewest runs and infinity the most.
  if (!(runs > 1)) return 1;
  return runs < static_cast<double>(kMaxRuns) ? static_cast<std::uint64_t>(runs) : kMaxRuns;
}

}  // namespace

BatchGoal batch_goal(double resolution_ns, bool is_host_clock, double budget_s, int samples) {
  const double smallest = std::max(resolution_ns, is_host_clock ? kHostClockCostNs : kDeviceClockCostNs);
  return {.min_ns = smallest / kResolution, .max_ns = 0.5e9 * budget_s / std::max(samples, 1)};
}

std::uint64_t batch_for(double run_ns, const BatchGoal& goal) {
  const double run = std::max(run_ns, 0.0);
  return std::min(runs_within(std::ceil(goal.min_ns / run)), runs_within(std::floor(goal.max_ns / run)));
}

std::uint64_t find_batch(double run_ns, const BatchGoal& goal, const std::function<double(std::uint64_t)>& run) {
  std::uint64_t batch = batch_for(run_ns, goal);
  if (run_ns >= 2 * goal.min_ns) return batch;  // no need to try, and runs may be long
  double each = run_ns;
  for (int i = 0; i < 12; ++i) {
    const double taken = run(batch);
    if (taken >= goal.min_ns || batch == kMaxRuns) break;
    // Back-to-back runs may be faster than the first ones. If the clock measured no time at all, the runs were shorter
    // than its resolution, so ten times as many do no harm.
    each = taken > 0 ? taken / static_cast<double>(batch) : each / 10;
    // A tenth more: runs vary, and a batch just at the limit would be tried repeatedly.
    BatchGoal wider = goal;
    wider.min_ns *= 1.1;
    const std::uint64_t wanted = taken > 0 ? batch_for(each, wider) : std::min(batch * 10, kMaxRuns);
    if (wanted <= batch) break;
    batch = wanted;
  }
  return batch;
}

}  // namespace weir::bench
