// How ragged_gemm packs its expert into a dimension, and the tile of its device body. Shared by workloads, the launch
// geometry and device code.
#pragma once

#include <cstdint>

#include "kernel/random.h"

namespace weir {

// dims[3]: the expert and their number; whether its rows are among all experts' grouped rows; whether a gelu follows.
WEIR_HOST_DEVICE constexpr std::int64_t ragged_expert(std::int64_t e, std::int64_t experts, bool is_grouped,
                                                      bool has_gelu) {
  return e | experts << 24 | static_cast<std::int64_t>(is_grouped) << 48 | static_cast<std::int64_t>(has_gelu) << 49;
}
WEIR_HOST_DEVICE constexpr std::int64_t expert_in(std::int64_t packed) { return packed & 0xffffff; }
WEIR_HOST_DEVICE constexpr std::int64_t experts_in(std::int64_t packed) { return packed >> 24 & 0xffffff; }
WEIR_HOST_DEVICE constexpr bool is_grouped_in(std::int64_t packed) { return (packed >> 48 & 1) != 0; }
WEIR_HOST_DEVICE constexpr bool has_gelu_in(std::int64_t packed) { return (packed >> 49 & 1) != 0; }

// Experts often have few rows, so tiles are flat.
inline constexpr int kRaggedRows = 64;
inline constexpr int kRaggedColumns = 128;
inline constexpr int kRaggedThreads = 256;

}  // namespace weir
