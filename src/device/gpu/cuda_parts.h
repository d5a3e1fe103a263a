// Parts of an NVIDIA GPU: green contexts, found by symbol at run time. Knows nothing of who runs in them.
#pragma once

#include "device/gpu/api.h"
#include "device/vendor_library.h"

namespace weir {

// Fills the four entries where the driver has all of what they need; otherwise leaves them null and says why.
void bind_parts(VendorLibrary& library, GpuApi& api);

}  // namespace weir
