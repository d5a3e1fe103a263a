// Device body of dispatch: adjacent threads along a token's row.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void dispatch(const KernelArguments& a) {
  const long long width = a.dims[1], picks = a.dims[2], capacity = a.dims[3];
  const int experts = static_cast<int>(a.scalars[0]);
  const int* const ids = operand<const int>(a, 1);
  const int* const slots = operand<const int>(a, 2);
  map_rows(a.dims[0] * picks, width, [&](long long assignment, long long column) {
    const int id = ids[assignment], slot = slots[assignment];
    if (id < 0 || id >= experts || slot < 0 || slot >= capacity) return;
    operand<T>(a, 3)[(id * capacity + slot) * width + column] =
        operand<const T>(a, 0)[assignment / picks * width + column];
  });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(dispatch, 256)
