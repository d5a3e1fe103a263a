// Device body of dropout.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/random.h"

namespace weir::device {

template <class T>
__device__ inline void dropout(const KernelArguments& a) {
  const T* const in = operand<const T>(a, 0);
  T* const out = operand<T>(a, 3);
  const unsigned long long done =
      static_cast<unsigned long long>(static_cast<long long>(operand<const float>(a, 1)[0]));
  const unsigned long long seed = done << 32 | static_cast<unsigned>(operand<const int>(a, 2)[0]);
  const unsigned least = static_cast<unsigned>(a.scalars[0] * 4294967296.0f);
  const long long count = a.dims[0] * a.dims[1];
  for (long long i = global_thread(); i < count; i += global_threads()) {
    const long long row = divide(i, a.dims[1]);
    const long long index = row * a.dims[2] + a.dims[3] + i - row * a.dims[1];
    const bool is_kept = random_bits(seed, static_cast<unsigned long long>(index)) >= least;
    store(out + i, is_kept ? a.scalars[1] * load(in + i) : 0.0f);
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(dropout, 256)
