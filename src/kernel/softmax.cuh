// Device body of softmax: a block per row, three passes over it (the second and third come from cache).
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

template <class T>
__device__ inline void softmax(const KernelArguments& a) {
  const long long columns = a.dims[1];
  for (long long row = blockIdx.x; row < a.dims[0]; row += gridDim.x) {
    const T* const in = operand<const T>(a, 0) + row * columns;
    T* const out = operand<T>(a, 1) + row * columns;
    const long long visible = a.dims[2] != 0 ? row - divide(row, columns) * columns + 1 : columns;
    float largest = -INFINITY;
    read_row(in, visible, [&](long long, float x) { largest = fmaxf(largest, x); });
    largest = over_block<Larger>(largest);
    RunningSum sum;
    read_row(in, visible, [&](long long, float x) { sum.add(expf(x - largest)); });
    const float total = over_block<Add>(sum.value());
    map_row(in, out, visible, [=](long long, float x) { return expf(x - largest) / total; });
    if (visible < columns) clear_row(out, visible, columns);
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(softmax, 1024)
