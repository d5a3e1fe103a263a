// Device body of increase.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void increase(const KernelArguments& a) {
  const int delta = static_cast<int>(a.dims[1]);
  for (long long i = global_thread(); i < a.dims[0]; i += global_threads())
    operand<T>(a, 1)[i] = operand<const T>(a, 0)[i] + delta;
}

}  // namespace weir::device

WEIR_KERNEL(increase, i32, int, 256)
