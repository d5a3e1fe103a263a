// How ragged_gemm packs its expert into a dimension, and the tile of its device body. Shared by workloads, the launch
// geometry and device code.
#pragma once


#include "kernel/random.h"

namespace weir {

// dims[3]: the expert and their number; whether its rows are among all experts' grouped rows; whether a gelu follows.
WEIR_HOST_DEVICE constexpr long long ragged_expert(long long e, long long experts, bool is_grouped,
                                                      bool has_gelu) {
  return e | experts << 24 | static_cast<long long>(is_grouped) << 48 | static_cast<long long>(has_gelu) << 49;
}
WEIR_HOST_DEVICE constexpr long long expert_in(long long packed) { return packed & 0xffffff; }
WEIR_HOST_DEVICE constexpr long long experts_in(long long packed) { return packed >> 24 & 0xffffff; }
WEIR_HOST_DEVICE constexpr bool is_grouped_in(long long packed) { return (packed >> 48 & 1) != 0; }
WEIR_HOST_DEVICE constexpr bool has_gelu_in(long long packed) { return (packed >> 49 & 1) != 0; }

// Experts often have few rows, so tiles are flat.
inline constexpr int kRaggedRows = 64;
inline constexpr int kRaggedColumns = 128;
inline constexpr int kRaggedThreads = 256;

}  // namespace weir
