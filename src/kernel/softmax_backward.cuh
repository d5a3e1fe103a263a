// Device body of softmax_backward: a block per row, two passes over it (the second comes from cache).
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

template <class T>
__device__ inline void softmax_backward(const KernelArguments& a) {
  const long long columns = a.dims[1];
  for (long long row = blockIdx.x; row < a.dims[0]; row += gridDim.x) {
    const T* const p = operand<const T>(a, 0) + row * columns;
    const T* const dp = operand<const T>(a, 1) + row * columns;
    RunningSum sum;
    read_rows(p, dp, columns, [&](long long, float x, float y) { sum.add(x * y); });
    const float mean = over_block<Add>(sum.value());
    zip_rows(p, dp, operand<T>(a, 2) + row * columns, columns,
             [=](long long, float x, float y) { return x * (y - mean); });
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(softmax_backward, 1024)
