// Memory of a GPU, and pinned host memory, outside of any session. Knows no step.
#pragma once

#include <memory>

#include "device/gpu/context.h"

namespace weir {

std::unique_ptr<DeviceMemory> make_gpu_memory(std::shared_ptr<PrimaryContext> context, Place place);

}  // namespace weir
