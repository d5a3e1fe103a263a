// Launches of packages' kernels on CUDA and HIP. Knows no clock and no check.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/gpu/api.h"
#include "lab/kernels/package/launch_site.h"

namespace weir::package {

class GpuLaunches final : public LaunchSite {
 public:
  // `module` is null for a library that launches by itself.
  GpuLaunches(const GpuApi& api, GpuModule module, GpuStream stream, Backend backend, Precision precision,
              std::vector<void*> buffers, std::string where);

 private:
  struct Function {
    GpuFunction handle = nullptr;
    bool knows_parameters = false;
    std::vector<std::size_t> parameter_bytes;
    std::uint32_t shared_bytes = 48 << 10;  // that it may have without asking, and what was asked for
  };

  int launch(const WeirLaunch& launch) override;
  int look_up(const char* name, std::size_t* index);

  const GpuApi& api_;
  GpuModule module_;
  GpuStream stream_;
  std::vector<Function> functions_;
  std::uint64_t words_[kMostArguments] = {};
  void* parameters_[kMostArguments];  // each to its word: a driver that reads more than were given reads nothing wild
};

}  // namespace weir::package
