// Device body of scatter.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void scatter(const KernelArguments& a) {
  const T* const in = operand<const T>(a, 0);
  const int* const index = operand<const int>(a, 1);
  T* const out = operand<T>(a, 2);
  const long long width = a.dims[1], out_rows = a.dims[2];
  map_rows(a.dims[0], width, [=](long long row, long long column) {
    const long long to = index[row];
    if (0 <= to && to < out_rows) out[to * width + column] = in[row * width + column];
  });
}

}  // namespace weir::device

WEIR_ANY_KERNEL(scatter, 256)
