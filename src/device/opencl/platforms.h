// All working OpenCL devices of all platforms, and notes about those that do not work. Opens only contexts.
#pragma once

#include "device/opencl/context.h"

#if WEIR_HAVE_OPENCL
#include <memory>
#include <string>
#include <vector>

namespace weir {

struct OpenclDevices {
  std::vector<std::shared_ptr<OpenclContext>> devices;  // GPUs first
  std::vector<std::string> notes;                       // about devices that were left out
  std::string reason;                                   // why there are none
};

// Queries all platforms of a loader. A platform or device that fails is left out with a note.
OpenclDevices find_opencl_devices(const OpenclApi& api);
// The same with this machine's loader, on the first call; kept as long as the program.
const OpenclDevices& opencl_devices();

}  // namespace weir
#endif
