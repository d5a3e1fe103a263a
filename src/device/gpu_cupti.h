// CUPTI as the table's activity: records of kernels and copies with their hardware channel.
#pragma once

#include <string>

#include "device/gpu_activity.h"

namespace weir {

// Opens the library on the first call; null with a reason where there is none.
const GpuActivity* open_cupti(std::string* reason);

}  // namespace weir
