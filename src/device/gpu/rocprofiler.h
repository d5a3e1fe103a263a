// rocprofiler-sdk as the table's activity: kernel dispatches and copies on AMD GPUs, with hardware queues.
#pragma once

#include <string>

#include "device/gpu/activity.h"

namespace weir {

// Registers this program with librocprofiler-sdk. Call before the HIP runtime is loaded: it looks for profilers once,
// as it starts. From then on its queues are intercepted, also while nothing is traced, so this is done on request only.
// False with a reason, among others that it is too late.
bool configure_rocprofiler(std::string* reason);

// Null with a reason if configure_rocprofiler() was not called, or failed.
const GpuActivity* open_rocprofiler(std::string* reason);

}  // namespace weir
