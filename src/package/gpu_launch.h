// The launch() that kernels of packages call on a GPU: finds the function, packs arguments, counts. Allocates nothing
// once a function is known. Knows no clock and no check.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device/gpu_api.h"
#include "package/launch_arguments.h"
#include "package/package.h"

namespace weir::package {

class GpuLaunches {
 public:
  // `module` is null for a library that launches by itself: then the stream has no launch(). `where` begins messages:
  // "softmax on cuda:0". Buffers as setup() declared them.
  GpuLaunches(const GpuApi& api, GpuModule module, GpuStream stream, Backend backend, Precision precision,
              std::vector<void*> buffers, std::string where);
  GpuLaunches(const GpuLaunches&) = delete;
  GpuLaunches& operator=(const GpuLaunches&) = delete;

  WeirStream* stream() noexcept { return &stream_; }
  // Accepted by the driver so far.
  std::uint64_t count() const noexcept { return count_; }
  // The first launch that failed since the last call, in words; empty if none did.
  std::string take_trouble() { return std::exchange(trouble_, {}); }

 private:
  struct Function {
    const char* pointer = nullptr;  // that the kernel gave: mostly the same literal again
    std::string name;
    GpuFunction handle = nullptr;
    bool knows_parameters = false;
    std::vector<std::size_t> parameter_bytes{};
    std::uint32_t shared_bytes = 48 << 10;  // that it may have without asking, and what was asked for
  };

  static int launch_entry(WeirStream* stream, const WeirLaunch* launch) noexcept;
  int launch(const WeirLaunch& launch);
  Function* find(const char* name);
  int refuse(const char* function, const std::string& what, int result);

  const GpuApi& api_;
  GpuModule module_;
  GpuStream gpu_stream_;
  std::vector<void*> buffers_;
  std::string where_;
  WeirStream stream_{};
  std::vector<Function> functions_;
  std::uint64_t words_[kMostArguments] = {};
  void* parameters_[kMostArguments];  // each to its word: a driver that reads more than were given reads nothing wild
  std::uint64_t count_ = 0;
  std::string trouble_;
};

}  // namespace weir::package
