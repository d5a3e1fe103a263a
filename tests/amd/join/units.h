// Times in nanoseconds.
#pragma once

#include <cstdint>

namespace weir::amd {

constexpr std::int64_t kMs = 1'000'000, kUs = 1000;

}  // namespace weir::amd
