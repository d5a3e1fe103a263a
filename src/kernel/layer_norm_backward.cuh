// Device body of layer_norm_backward: a block per row, three passes over it (the second and third come from cache).
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

template <class T>
__device__ inline void layer_norm_backward(const KernelArguments& a) {
  const long long columns = a.dims[1];
  const float width = static_cast<float>(columns);
  const T* const gamma = operand<const T>(a, 1);
  float* const stats = operand<float>(a, 4);
  for (long long row = blockIdx.x; row < a.dims[0]; row += gridDim.x) {
    const T* const in = operand<const T>(a, 0) + row * columns;
    const T* const dy = operand<const T>(a, 2) + row * columns;
    // Shifted by the row's first value, as on the CPU, to keep the digits of a row far from zero.
    const float shift = load(in);
    RunningSum sum;
    read_row(in, columns, [&](long long, float x) { sum.add(x - shift); });
    const float mean = over_block<Add>(sum.value()) / width;
    RunningSum squares, scaled, product;
    read_rows(in, dy, columns, [&](long long c, float x, float gradient) {
      const float distance = x - shift - mean, by_normal = rounded_product(gradient, load(gamma + c));
      squares.add(distance * distance);
      scaled.add(by_normal);
      product.add(by_normal * distance);
    });
    const float inverse = 1.0f / sqrtf(over_block<Add>(squares.value()) / width + a.scalars[0]);
    const float by_mean = over_block<Add>(scaled.value()) / width;
    const float by_deviation = over_block<Add>(product.value()) / width * inverse;
    zip_rows(in, dy, operand<T>(a, 3) + row * columns, columns, [=](long long c, float x, float gradient) {
      // The product is rounded as it was in the sum, so that terms which cancel (a single column) cancel exactly.
      const float by_normal = rounded_product(gradient, load(gamma + c));
      return (by_normal - by_mean - (x - shift - mean) * inverse * by_deviation) * inverse;
    });
    if (threadIdx.x == 0) {
      stats[2 * row] = shift + mean;
      stats[2 * row + 1] = inverse;
    }
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(layer_norm_backward, 1024)
