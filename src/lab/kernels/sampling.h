// The loop that takes samples: one batch each, disturbed ones again, until there is enough. What happens between two
// batches is never inside of one.
#pragma once

#include <string>
#include <vector>

#include "lab/kernels/disturbance.h"
#include "lab/kernels/method.h"
#include "lab/kernels/surroundings.h"

namespace weir::bench {

struct SamplingPlan {
  std::uint64_t batch = 1;
  double run_ns = 0;               // of one run, about
  bool has_yardstick = false;      // on the CPU: run it now and then
  bool is_ours = true;             // runs are done or launched by this thread
  double smallest_difference = 0;  // ns per run that the clock shows in a batch
};

struct Sampled {
  std::vector<double> samples_ns;
  std::vector<double> yardstick_ns;
  std::string stopped_by;  // iterations, interval, entropy, most_iterations, budget, stopped
  Json disturbed, clocks_mhz;
  std::vector<double> of_wall;      // by batch: device time as part of what was seen from outside; of executables
  std::vector<double> host_shares;  // by batch: time of the calls as part of the device's
};

Sampled take_samples(package::ReadyKernel& kernel, const SamplingPlan& plan, const MethodOptions& options,
                     const Surroundings& surroundings);

}  // namespace weir::bench
