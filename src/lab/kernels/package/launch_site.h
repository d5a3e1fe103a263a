// The implementation of a WeirStream on devices: checks, packs and counts the launches of package kernels. Backends add
// how a function is found and launched. Allocates nothing once a function is known.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lab/kernels/package/package.h"
#include "weir/kernel.h"

namespace weir::package {

inline constexpr std::uint32_t kMaxArguments = 64;

// One argument as device code sees it: the first bytes of a word.
struct PackedArgument {
  std::uint64_t word = 0;
  std::uint32_t bytes = 8;
};
// `buffers` has the device's handle of each buffer: an address, a cl_mem. launch_fault() must have returned null.
PackedArgument pack(const WeirArgument& argument, std::span<void* const> buffers);

// Why a launch is invalid on any device: an undeclared buffer, an unknown kind, too many arguments. Null if it is
// valid; otherwise a literal to put after the function's name.
const char* launch_fault(const WeirLaunch& launch, std::size_t buffer_count) noexcept;

// In launch sizes, 0 counts as 1.
constexpr std::uint32_t at_least_one(std::uint32_t value) { return value == 0 ? 1 : value; }

class LaunchSite {
 public:
  virtual ~LaunchSite() = default;
  LaunchSite(const LaunchSite&) = delete;
  LaunchSite& operator=(const LaunchSite&) = delete;

  WeirStream* stream() noexcept { return &stream_; }
  // Launches accepted by the driver so far.
  std::uint64_t count() const noexcept { return count_; }
  // Describes the first launch that failed since the last call; empty if none did.
  std::string take_trouble() { return std::exchange(trouble_, {}); }

 protected:
  static constexpr int kRefused = -1;  // what kernels get if the driver was not called
  static constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);

  // Messages begin with `where`: "softmax on cuda:0". Buffers are as declared by setup(). `launches_itself`: the kernel
  // is a library with its own device code, so the stream has no launch().
  LaunchSite(Backend backend, Precision precision, void* native, std::vector<void*> buffers, std::string where,
             bool launches_itself);

  // Returns 0, or the result of refuse(). Called only for launches without a launch_fault().
  virtual int launch(const WeirLaunch& launch) = 0;

  std::span<void* const> buffers() const noexcept { return buffers_; }
  int refuse(const char* function, const std::string& what, int result = kRefused);
  // Numbers functions in the order in which they were added.
  std::size_t find(const char* name) noexcept;
  std::size_t add(const char* name);

 private:
  struct Name {
    const char* pointer;  // given by the kernel: mostly the same literal again
    std::string text;
  };
  static int launch_entry(WeirStream* stream, const WeirLaunch* launch) noexcept;

  std::vector<void*> buffers_;
  std::string where_;
  WeirStream stream_{};
  std::vector<Name> names_;
  std::uint64_t count_ = 0;
  std::string trouble_;
};

}  // namespace weir::package
