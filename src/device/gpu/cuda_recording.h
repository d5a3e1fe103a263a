// Kernel launches of NVIDIA's libraries, read back from a captured graph and repeated without asking the library again.
#pragma once

#include "device/gpu/api.h"
#include "device/vendor_library.h"

namespace weir {

// Fills the two entries where the driver has what they need; leaves them null otherwise.
void bind_recording(VendorLibrary& library, GpuApi& api);

}  // namespace weir
