// CUPTI as the table's activity: records of kernels and copies with their hardware channels.
#pragma once

#include <string>

#include "device/gpu/activity.h"

namespace weir {

// Opens the library on the first call; null with a reason if there is none.
const GpuActivity* open_cupti(std::string* reason);

// Makes kernel records include when the driver wrote them to their queue. Call before the driver starts: later it has
// no effect. Costs time at every launch, so only on request. False with a reason if it is not possible.
bool enable_cupti_latency(std::string* reason);

}  // namespace weir
