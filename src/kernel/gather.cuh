// Device body of gather.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void gather(const KernelArguments& a) {
  const T* const table = operand<const T>(a, 0);
  const int* const index = operand<const int>(a, 1);
  T* const out = operand<T>(a, 2);
  const long long width = a.dims[1], table_rows = a.dims[2];
  map_rows(a.dims[0], width, [=](long long row, long long column) {
    const long long from = index[row];
    const bool is_inside = 0 <= from && from < table_rows;
    if (is_inside) {
      out[row * width + column] = table[from * width + column];
    } else {
      store(out + row * width + column, 0.0f);
    }
  });
}

}  // namespace weir::device

WEIR_ANY_KERNEL(gather, 256)
