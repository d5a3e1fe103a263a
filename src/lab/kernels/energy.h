// Joules of one run, from a counter over many of them. Knows telemetry; never one reading of power.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "lab/kernels/package/ready_kernel.h"
#include "lab/kernels/surroundings.h"

namespace weir::bench {

struct EnergyOptions {
  double run_ns = 0;  // of one run, about
  bool is_host = false;
  double limit_s = 4;  // of the whole
  std::function<bool()> is_stopped;
};

// The block: {"energy_j", "power_w", "source", "window_s", "runs", "readings", "busy", "reason"}: numbers are null
// where the device tells nothing, or not enough. Where nobody measures it.
Json no_energy(const std::string& reason);

Json measure_energy(package::ReadyKernel& kernel, const Surroundings& surroundings, const EnergyOptions& options);

}  // namespace weir::bench
