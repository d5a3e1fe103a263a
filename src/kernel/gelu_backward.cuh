// Device body of gelu_backward.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void gelu_backward(const KernelArguments& a) {
  zip_floats(operand<const T>(a, 0), operand<const T>(a, 1), operand<T>(a, 2), a.dims[0], a.dims[0],
             [](float x, float dy) {
               // 1 / sqrt(2) and 1 / sqrt(2 pi)
               return dy * (0.5f * erfcf(-x * 0.70710678f) + x * 0.398942280f * expf(-0.5f * x * x));
             });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(gelu_backward, 256)
