// Device body of accept: a thread per sequence.
#pragma once

#include "kernel/device_types.cuh"

namespace weir::device {

template <class T>
__device__ inline void accept(const KernelArguments& a) {
  const long long s = global_thread();
  const int speculated = static_cast<int>(a.dims[1]);
  if (s >= a.dims[0]) return;
  const int* const draft = operand<const int>(a, 0) + s * speculated;
  const int* const target = operand<const int>(a, 1) + s * (speculated + 1);
  int agreed = 0;
  while (agreed < speculated && draft[agreed] == target[agreed]) ++agreed;
  operand<int>(a, 3)[s] = operand<const int>(a, 2)[s] + agreed + 1;
  operand<int>(a, 4)[s] = target[agreed];
  operand<int>(a, 5)[s] = agreed + 1;
}

}  // namespace weir::device

WEIR_KERNEL(accept, i32, int, 32)
