// Every OpenCL device that works, over all platforms; and what is there and does not. Opens nothing but contexts.
#pragma once

#include "device/opencl/context.h"

#if WEIR_HAVE_OPENCL
#include <memory>
#include <string>
#include <vector>

namespace weir {

struct OpenclDevices {
  std::vector<std::shared_ptr<OpenclContext>> devices;  // GPUs first
  std::vector<std::string> notes;                       // about what was left out
  std::string reason;                                   // why there are none
};

// Asks all platforms that a loader knows. A platform or device that fails is left out with a note.
OpenclDevices find_opencl_devices(const OpenclApi& api);
// The same with the loader of this machine, on the first call; kept as long as the program.
const OpenclDevices& opencl_devices();

}  // namespace weir
#endif
