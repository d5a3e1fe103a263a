// Device body of copy.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void copy(const KernelArguments& a) {
  map_runs(operand<const T>(a, 0), operand<T>(a, 1), a.dims[0], [](auto run) { return run; });
}

}  // namespace weir::device

WEIR_ANY_KERNEL(copy, 256)
