// Compiles a package's sources into loadable files, with the system's compilers as limited child processes, and keeps
// them in a cache by content. Knows compilers; opens nothing.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "kernel/public_headers.h"
#include "lab/kernels/package/package.h"
#include "lab/kernels/package/ready_kernel.h"

namespace weir::package {

// Sources that do not compile. `what` has file, line and text of the first error.
class BuildError : public Error {
 public:
  BuildError(Fault fault, const std::string& what, std::string hint, std::string output)
      : Error(fault, what, std::move(hint)), output(std::move(output)) {}
  std::string output;  // the compiler's output; if very long, its beginning and end
};

// Builds the host part as a shared object: kernel.cpp, or else the device source compiled as C++. Returns the file in
// the cache.
std::filesystem::path build_host_part(const Package& package, const Part& part, const OpenOptions& options);
// Builds kernel.cu with nvcc or kernel.hip with hipcc, including the host part, as a shared object.
std::filesystem::path build_ahead(const Package& package, const Part& part, const OpenOptions& options);

// Headers of include/weir that are compiled into this program: kernel.h, device.h.
using EmbeddedHeader = EmbeddedSource;
inline std::span<const EmbeddedHeader> embedded_headers() { return public_headers(); }

}  // namespace weir::package
