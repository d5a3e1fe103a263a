// The best that this device can do, as measured, and how a kernel compares with it. Knows no package.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "lab/kernels/package/ready_kernel.h"

namespace weir::bench {

struct Ceiling {
  std::optional<double> value;  // bytes/s or flop/s
  std::string how;              // how it was measured, or why there is none
};
struct Ceilings {
  std::string device;  // cuda:0
  Ceiling bandwidth;
  std::map<Precision, Ceiling> compute;
};

// Takes some seconds on a device. `threads`: how many threads kernels may use on the CPU. No failure is fatal: a
// ceiling that cannot be measured has a reason.
Ceilings measure_ceilings(package::Backend backend, int device, int threads);
// The same for this CPU with this many threads, whatever the backend.
Ceilings cpu_ceilings(int threads);

Json ceilings_document(const Ceilings& ceilings);
Ceilings ceilings_from(const Json& document);

// {"flop", "bytes", "intensity", "bound": "memory" | "compute" | null, "of_ceiling": 0..1, "bytes_per_s", "flop_per_s",
// "ceiling_bytes_per_s", "ceiling_flop_per_s", "reason"}
Json roofline(const package::Work& work, Precision precision, double seconds, const Ceilings* ceilings);

}  // namespace weir::bench
