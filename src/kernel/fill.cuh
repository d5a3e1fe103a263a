// Device body of fill: the same bits as the CPU body, because random.h rounds the same way on both.
#pragma once

#include "kernel/device_types.cuh"
#include "kernel/random.h"

namespace weir::device {

template <class T>
__device__ inline void fill(const KernelArguments& a) {
  T* const out = operand<T>(a, 0);
  const bool is_random = a.dims[1] != 0;
  for (long long i = global_thread(); i < a.dims[0]; i += global_threads())
    store(out + i, is_random
                       ? random_uniform(static_cast<unsigned long long>(a.dims[2]),
                                        static_cast<unsigned long long>(a.dims[3] + i), a.scalars[0], a.scalars[1])
                       : a.scalars[0]);
}

}  // namespace weir::device

WEIR_ANY_KERNEL(fill, 256)
