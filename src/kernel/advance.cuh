// Device body of advance: a thread per slot.
#pragma once

#include "kernel/device_types.cuh"

namespace weir::device {

template <class T>
__device__ inline void advance(const KernelArguments& a) {
  const long long slot = global_thread();
  if (slot >= a.dims[0]) return;
  const int length = operand<const int>(a, 0)[slot], remaining = operand<const int>(a, 1)[slot];
  const bool is_active = length > 0 && remaining > 0;
  operand<int>(a, 2)[slot] = is_active && remaining > 1 ? length + 1 : 0;
  operand<int>(a, 3)[slot] = is_active ? remaining - 1 : 0;
  operand<int>(a, 4)[slot] = is_active ? 1 : 0;
}

}  // namespace weir::device

WEIR_KERNEL(advance, i32, int, 256)
