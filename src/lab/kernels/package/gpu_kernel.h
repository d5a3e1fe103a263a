// Kernels of packages on a GPU over a given function table, so that tests can supply their own.
#pragma once

#include <memory>

#include "device/gpu/api.h"
#include "lab/kernels/package/backends.h"

namespace weir::package {

// Like open_gpu, with this table, which must outlive what is opened.
std::unique_ptr<OpenPackage> open_gpu_with(const GpuApi& api, std::shared_ptr<const HostPart> part, Backend backend,
                                           DeviceSource source, const OpenOptions& options);

}  // namespace weir::package
