// How many runs make one sample, so that the clock resolves it. Knows durations; never a kernel.
#pragma once

#include <cstdint>
#include <functional>

namespace weir::bench {

// The clock's smallest difference may be this part of a sample.
inline constexpr double kResolution = 0.001;
// What taking the time costs by itself, at most: two calls of the host's clock; two events that a device records.
inline constexpr double kHostClockCostNs = 100;
inline constexpr double kDeviceClockCostNs = 1000;
inline constexpr std::uint64_t kMostRuns = std::uint64_t{1} << 30;

// Within these a sample's time should be. `most_ns` wins where both cannot be.
struct BatchGoal {
  double least_ns = 0;
  double most_ns = 0;
};
// A sample takes at most half of its share of the budget: as many may have to be redone as there are.
BatchGoal batch_goal(double resolution_ns, bool is_host_clock, double budget_s, int samples);

// The smallest batch of runs of `run_ns` that is within the goal; 1 to kMostRuns.
std::uint64_t batch_for(double run_ns, const BatchGoal& goal);

// The same, tried out: `run` runs so many and says how long they took. At most 12 calls.
std::uint64_t find_batch(double run_ns, const BatchGoal& goal, const std::function<double(std::uint64_t)>& run);

}  // namespace weir::bench
