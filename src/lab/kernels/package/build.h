// Turns a package's sources into files that can be opened, with the system's compilers as limited child processes, and
// keeps them in a cache by content. Knows compilers; opens nothing.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "lab/kernels/package/package.h"
#include "lab/kernels/package/ready_kernel.h"

namespace weir::package {

// Sources that do not compile. `what` has file, line and words of the first error.
class BuildError : public Error {
 public:
  BuildError(Fault fault, const std::string& what, std::string hint, std::string output)
      : Error(fault, what, std::move(hint)), output(std::move(output)) {}
  std::string output;  // all that the compiler said; of very much the beginning and the end
};

// The host part as a shared object: kernel.cpp, or else the device source compiled as C++. The file in the cache.
std::filesystem::path build_host_part(const Package& package, const Part& part, const OpenOptions& options);
// kernel.cu by nvcc or kernel.hip by hipcc, host part included, as a shared object.
std::filesystem::path build_ahead(const Package& package, const Part& part, const OpenOptions& options);

// Headers of include/weir as compiled into this program: kernel.h, device.h.
struct EmbeddedHeader {
  std::string_view name, text;
};
std::span<const EmbeddedHeader> embedded_headers();

}  // namespace weir::package
