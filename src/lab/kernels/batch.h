// Chooses how many runs make one sample, so that the clock resolves it. Knows durations; never a kernel.
#pragma once

#include <cstdint>
#include <functional>

namespace weir::bench {

// The clock's smallest difference may be at most this fraction of a sample.
inline constexpr double kResolution = 0.001;
// The most that reading the time costs: two calls of the host's clock; two events recorded by a device.
inline constexpr double kHostClockCostNs = 100;
inline constexpr double kDeviceClockCostNs = 1000;
inline constexpr std::uint64_t kMaxRuns = std::uint64_t{1} << 30;

// The limits of a sample's time. `max_ns` wins if both cannot be met.
struct BatchGoal {
  double min_ns = 0;
  double max_ns = 0;
};
// A sample takes at most half of its share of the budget, because every sample may have to be redone.
BatchGoal batch_goal(double resolution_ns, bool is_host_clock, double budget_s, int samples);

// The smallest batch of runs of `run_ns` that meets the goal; 1 to kMaxRuns.
std::uint64_t batch_for(double run_ns, const BatchGoal& goal);

// The same, by trial: `run` runs the given number and returns how long they took. At most 12 calls.
std::uint64_t find_batch(double run_ns, const BatchGoal& goal, const std::function<double(std::uint64_t)>& run);

}  // namespace weir::bench
