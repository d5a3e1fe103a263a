// Device body of add.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void add(const KernelArguments& a) {
  const long long count = a.dims[0] * a.dims[1], period = a.dims[2] != 0 ? a.dims[1] : count;
  const float a_scale = a.scalars[0], b_scale = a.scalars[1];
  zip_floats(operand<const T>(a, 0), operand<const T>(a, 1), operand<T>(a, 2), count, period,
             [=](float x, float y) { return a_scale * x + b_scale * y; });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(add, 256)
