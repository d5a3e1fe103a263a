// Which compiler flags a bench.yaml may contain, and which compiler gets them. An allow list: flags that load code,
// access files elsewhere, or make the result unusable are refused. Runs no compiler.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lab/kernels/package/package.h"

namespace weir::package {

// Rejects a flag that is not allowed, and lists those that are.
void check_compile_flag(std::string_view flag);

// The flags that the compiler of a source understands: the system's C++ compiler (host_source), NVRTC or, ahead, nvcc
// (cuda_source), hipRTC or hipcc (hip_source), the OpenCL driver (opencl_source). Folders of -I are below `folder`, and
// absolute.
std::vector<std::string> flags_for(Form source, bool is_ahead, const std::vector<std::string>& flags,
                                   const std::filesystem::path& folder);

}  // namespace weir::package
