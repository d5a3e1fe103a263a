// How a matrix product packs into a shape: dims = {m, n, k, gemm_flags(...)}, scalars = {alpha, beta}.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/kernel.h"

namespace weir {

// The matrices of a batch are contiguous: A as [batch][m][k] (transposed: [batch][k][m]), B and C likewise.
constexpr std::int64_t gemm_flags(bool transposes_a, bool transposes_b, std::int64_t batch = 1) {
  return (transposes_a ? 1 : 0) | (transposes_b ? 2 : 0) | batch << 8;
}

constexpr bool transposes_a(const KernelShape& gemm) { return (gemm.dims[3] & 1) != 0; }
constexpr bool transposes_b(const KernelShape& gemm) { return (gemm.dims[3] & 2) != 0; }
// Flags without a batch mean one product.
constexpr std::int64_t gemm_batch(const KernelShape& gemm) { return std::max<std::int64_t>(1, gemm.dims[3] >> 8); }

}  // namespace weir
