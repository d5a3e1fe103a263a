// Device body of batch_norm: threads along a row, each with the scale of its own column.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void batch_norm(const KernelArguments& a) {
  const long long columns = a.dims[1];
  const T* const in = operand<const T>(a, 0);
  const T* const mean = operand<const T>(a, 1);
  const T* const variance = operand<const T>(a, 2);
  const T* const gamma = operand<const T>(a, 3);
  const T* const beta = operand<const T>(a, 4);
  T* const out = operand<T>(a, 5);
  const float epsilon = a.scalars[0];
  map_rows(a.dims[0], columns, [=](long long row, long long c) {
    const float scale = load(gamma + c) / sqrtf(load(variance + c) + epsilon);
    store(out + row * columns + c, (load(in + row * columns + c) - load(mean + c)) * scale + load(beta + c));
  });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(batch_norm, 256)
