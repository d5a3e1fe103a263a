// The ways from a host part to a ready kernel, one source file each.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lab/kernels/package/host_part.h"

namespace weir::package {

// cpu_kernel.cpp: calls run() in this thread. `how`: "called", or "library" if it was built elsewhere.
std::unique_ptr<OpenPackage> open_cpu(std::shared_ptr<const HostPart> part, const OpenOptions& options,
                                      std::string how = "called");

// gpu_kernel.cpp: CUDA and HIP over GpuApi. `source` is the text of kernel.cu or kernel.hip, compiled at run time for
// each precision; empty if the library launches by itself.
struct DeviceSource {
  std::string name, text;
  std::vector<std::string> flags;
  std::string built_by;  // if text is empty: "nvcc", "hipcc", "library"
};
std::unique_ptr<OpenPackage> open_gpu(std::shared_ptr<const HostPart> part, Backend backend, DeviceSource source,
                                      const OpenOptions& options);

// opencl_kernel.cpp
std::unique_ptr<OpenPackage> open_opencl(std::shared_ptr<const HostPart> part, DeviceSource source,
                                         const OpenOptions& options);

// executable.cpp: a conversation in JSON lines (docs/bench_protocol.md), with the package's executable, or with python3
// and an adapter that serves the package's module.
std::unique_ptr<OpenPackage> open_executable(const Package& package, const OpenOptions& options);
std::unique_ptr<OpenPackage> open_python(const Package& package, Backend backend, const OpenOptions& options);

// The text of python_adapter.py.
std::string_view python_adapter();

}  // namespace weir::package
