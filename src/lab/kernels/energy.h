// Measures the energy of one run with a counter over many runs. Knows telemetry; never relies on a single power
// reading.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "lab/kernels/package/ready_kernel.h"
#include "lab/kernels/surroundings.h"

namespace weir::bench {

struct EnergyOptions {
  double run_ns = 0;  // approximate time of one run
  bool is_host = false;
  double limit_s = 4;  // of the whole measurement
  std::function<bool()> is_stopped;
};

// Both return {"energy_j", "power_w", "source", "window_ns", "runs", "readings", "busy", "reason"}; numbers are null if
// the device reports nothing, or not enough. no_energy() is for cases that are not measured.
Json no_energy(const std::string& reason);

Json measure_energy(package::ReadyKernel& kernel, const Surroundings& surroundings, const EnergyOptions& options);

}  // namespace weir::bench
