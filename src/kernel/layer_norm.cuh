// Device body of layer_norm: a block per row, three passes over it (the second and third come from cache).
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

template <class T>
__device__ inline void layer_norm(const KernelArguments& a) {
  const long long columns = a.dims[1];
  const float width = static_cast<float>(columns);
  const T* const gamma = operand<const T>(a, 1);
  const T* const beta = operand<const T>(a, 2);
  for (long long row = blockIdx.x; row < a.dims[0]; row += gridDim.x) {
    const T* const in = operand<const T>(a, 0) + row * columns;
    T* const out = operand<T>(a, 3) + row * columns;
    // Shifted by the row's first value, as on the CPU, to keep the digits of a row far from zero.
    const float shift = load(in);
    RunningSum sum, squares;
    read_row(in, columns, [&](long long, float x) { sum.add(x - shift); });
    const float mean = over_block<Add>(sum.value()) / width;
    read_row(in, columns, [&](long long, float x) { squares.add((x - shift - mean) * (x - shift - mean)); });
    const float scale = 1.0f / sqrtf(over_block<Add>(squares.value()) / width + a.scalars[0]);
    map_row(in, out, columns,
            [=](long long c, float x) { return (x - shift - mean) * scale * load(gamma + c) + load(beta + c); });
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(layer_norm, 1024)
