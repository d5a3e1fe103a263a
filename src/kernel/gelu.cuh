// Device body of gelu.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void gelu(const KernelArguments& a) {
  map_floats(operand<const T>(a, 0), operand<T>(a, 1), a.dims[0], [](auto& values) {
#pragma unroll
    for (float& x : values) x = 0.5f * x * erfcf(-x * 0.70710678f);  // 1 / sqrt(2)
  });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(gelu, 256)
