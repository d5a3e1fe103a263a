// Device body of layer_norm_grad. Threads add in a fixed order, without atomics, so sums are reproducible bit for bit.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

// 16 adjacent columns, which fill whole memory sectors in every type, and 64 threads down each: 2048 columns make 128
// blocks of 1024 threads, about one per multiprocessor of a large GPU.
template <class T>
__device__ inline void layer_norm_grad(const KernelArguments& a) {
  constexpr int kColumns = 16, kDown = 64;
  __shared__ float partial[2][kDown][kColumns + 1];
  const long long rows = a.dims[0], columns = a.dims[1];
  const T* const in = operand<const T>(a, 0);
  const T* const dy = operand<const T>(a, 1);
  const float* const stats = operand<const float>(a, 2);
  const int lane = threadIdx.x % kColumns, down = threadIdx.x / kColumns;
  const long long column = static_cast<long long>(blockIdx.x) * kColumns + lane;
  RunningSum by_gamma, by_beta;
  if (column < columns) {
#pragma unroll 4
    for (long long row = down; row < rows; row += kDown) {
      const float gradient = load(dy + row * columns + column);
      by_gamma.add(gradient * ((load(in + row * columns + column) - stats[2 * row]) * stats[2 * row + 1]));
      by_beta.add(gradient);
    }
  }
  partial[0][down][lane] = by_gamma.value();
  partial[1][down][lane] = by_beta.value();
  __syncthreads();
  if (down > 1 || column >= columns) return;
  RunningSum total;
  for (int i = 0; i < kDown; ++i) total.add(partial[down][i][lane]);
  T* const out = down == 0 ? operand<T>(a, 3) : operand<T>(a, 4);
  store(out + column, total.value());
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(layer_norm_grad, 1024)
