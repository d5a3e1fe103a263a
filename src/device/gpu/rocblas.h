// rocBLAS as the table's matrix products.
#pragma once

#include <string>

#include "device/gpu/api.h"

namespace weir {

// Opens the library on the first call; null with a reason where there is none.
const GpuBlas* open_rocblas(std::string* reason);

}  // namespace weir
