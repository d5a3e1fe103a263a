// What this device can do at best, measured on it, and where a kernel stands against that. Knows no package.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "lab/kernels/package/ready_kernel.h"

namespace weir::bench {

struct Ceiling {
  std::optional<double> value;  // bytes/s or flop/s
  std::string how;              // what was run to get it; why there is none
};
struct Ceilings {
  std::string device;  // cuda:0
  Ceiling bandwidth;
  std::map<Precision, Ceiling> compute;
};

// Takes some seconds on a device. `threads`: on the CPU, as many as kernels may use. Nothing is fatal: a ceiling that
// cannot be measured says why.
Ceilings measure_ceilings(package::Backend backend, int device, int threads);
// The same of this CPU with so many threads, whatever the backend.
Ceilings cpu_ceilings(int threads);

Json ceilings_document(const Ceilings& ceilings);
Ceilings ceilings_from(const Json& document);

// {"flop", "bytes", "intensity", "bound": "memory" | "compute" | null, "of_ceiling": 0..1, "bandwidth", "compute",
// "ceiling_bandwidth", "ceiling_compute", "reason"}
Json roofline(const package::Work& work, Precision precision, double seconds, const Ceilings* ceilings);

}  // namespace weir::bench
