// NVIDIA's libraries as a filled function table, for the list of devices and for code that measures the driver itself.
#pragma once

#include <string>

#include "device/gpu/api.h"

namespace weir {

// Opens the driver on the first call; null with a reason if there is none. The table lives as long as the program.
const GpuApi* cuda_api(std::string* reason);

}  // namespace weir
