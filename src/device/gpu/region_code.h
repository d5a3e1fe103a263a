// Regions, and other kernels that are not built ahead, compiled by the GPU's own compiler (NVRTC, hipRTC). Knows no
// step.
#pragma once

#include <map>
#include <string>

#include "device/device.h"
#include "device/gpu/api.h"
#include "device/gpu/compiler.h"
#include "device/gpu/error.h"
#include "kernel/region.h"

namespace weir {

class RegionCode {
 public:
  explicit RegionCode(const GpuApi& api, int index) : api_(api), index_(index) {}

  // The function of a region, which takes KernelArguments: from this context, from the user's cache, or from the
  // compiler just now. Null if there is no compiler, or if it fails; `done` then has the reason, and counts what
  // happened in any case. The context must be current. For one thread at a time.
  GpuFunction find(const KernelShape& shape, Compilation& done);
  // The same for any source, which may include weir/device.h.
  GpuFunction function(GpuSource source, const char* name, Compilation& done);
  void clear() { modules_.clear(); }

 private:
  struct Loaded {
    GpuModuleOwner module;
    GpuFunction function = nullptr;
  };
  Loaded load(const std::string& code, const char* name) const;
  GpuFunction find_or_throw(GpuSource source, const char* name, Compilation& done);

  const GpuApi& api_;
  int index_;
  std::map<std::string, Loaded> modules_;  // by key
};

}  // namespace weir
