// The launch geometry of gemm.cl, Weir's own OpenCL gemm, needed because not every platform has a library.
#pragma once

#include "kernel/body.h"
#include "kernel/gemm.h"

namespace weir {

// A work-group computes this square of one product of the batch; gemm.cl repeats these numbers.
inline constexpr std::int64_t kGemmTile = 64;
inline constexpr unsigned kGemmThreads = 256;

constexpr Geometry gemm_geometry(const KernelShape& gemm) {
  return {grid_of(divide_up(gemm.dims[0], kGemmTile) * divide_up(gemm.dims[1], kGemmTile) * gemm_batch(gemm)),
          kGemmThreads};
}

}  // namespace weir
