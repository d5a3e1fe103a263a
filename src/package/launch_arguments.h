// What kernels of packages give to launch(), checked and laid out for any device. Knows no device.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "weir/kernel.h"

namespace weir::package {

inline constexpr std::uint32_t kMostArguments = 64;

// One argument as device code sees it: the first bytes of a word.
struct PackedArgument {
  std::uint64_t word = 0;
  std::uint32_t bytes = 8;
};
// `buffers` has what stands for each on the device: an address, a cl_mem. launch_fault() must have found nothing.
PackedArgument pack(const WeirArgument& argument, std::span<void* const> buffers);

// Why a launch cannot be made whatever the device says: a buffer that was not declared, a kind that there is not, too
// many arguments. Null where nothing is wrong; else a literal to put after the function's name.
const char* launch_fault(const WeirLaunch& launch, std::size_t buffer_count) noexcept;

// Sizes of launches: 0 counts as 1.
constexpr std::uint32_t at_least_one(std::uint32_t value) { return value == 0 ? 1 : value; }

}  // namespace weir::package
