// AMD's libraries as a filled function table, for the list of devices.
#pragma once

#include <string>

#include "device/gpu/api.h"

namespace weir {

// Opens the runtime on the first call; null with a reason if there is none. The table lives as long as the program.
const GpuApi* hip_api(std::string* reason);

}  // namespace weir
