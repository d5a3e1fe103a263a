// ROCm SMI as the table's management library: temperature, power, energy, how busy the board is.
#pragma once

#include <string>

#include "device/gpu/api.h"

namespace weir {

// Opens the library on the first call; null with a reason where there is none.
const GpuManagement* open_rocm_smi(std::string* reason);

}  // namespace weir
