// NVML as the table's management library: clocks, power, energy, temperature, throttling.
#pragma once

#include <string>

#include "device/gpu/api.h"

namespace weir {

// Opens the library on the first call; null with a reason where there is none.
const GpuManagement* open_nvml(std::string* reason);

}  // namespace weir
