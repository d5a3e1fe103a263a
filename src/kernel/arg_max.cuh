// Device body of arg_max: a block per row.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/ranked.h"

namespace weir::device {

template <class T>
__device__ inline void arg_max(const KernelArguments& a) {
  __shared__ unsigned long long partial[1024 / 32];
  const long long columns = a.dims[1];
  const int width = min(warpSize, static_cast<int>(blockDim.x)), warps = blockDim.x / width;
  for (long long row = blockIdx.x; row < a.dims[0]; row += gridDim.x) {
    unsigned long long best = 0;
    read_row(operand<const T>(a, 0) + row * columns, columns,
             [&](long long column, float x) { best = max(best, ranked(x, column)); });
    best = largest_of_warp(best, width);
    if (threadIdx.x % width == 0) partial[threadIdx.x / width] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int warp = 1; warp < warps; ++warp) best = max(best, partial[warp]);
      operand<int>(a, 1)[row] = index_of(best);
    }
    __syncthreads();  // before the next row's partial results are written
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(arg_max, 1024)
