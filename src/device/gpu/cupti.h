// CUPTI as the table's activity: records of kernels and copies with their hardware channel.
#pragma once

#include <string>

#include "device/gpu/activity.h"

namespace weir {

// Opens the library on the first call; null with a reason where there is none.
const GpuActivity* open_cupti(std::string* reason);

// Records of kernels then say when the driver had written them to their queue. Call before the driver is started: later
// it has no effect. Costs time at every launch, so only where it is asked for. False with a reason where it cannot be.
bool enable_cupti_latency(std::string* reason);

}  // namespace weir
