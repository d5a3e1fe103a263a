// Device body of cache_write.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void cache_write(const KernelArguments& a) {
  const int* const slots = operand<const int>(a, 1);
  const int* const lengths = operand<const int>(a, 2);
  const long long queries = a.dims[1], positions = a.dims[2], slots_total = static_cast<long long>(a.scalars[0]);
  map_row_runs(operand<const T>(a, 0), operand<T>(a, 3), a.dims[0] * queries, a.dims[3],
               [=](auto from, auto to, long long row, long long run, long long runs) {
                 const long long sequence = row / queries, slot = slots[sequence];
                 const long long position = lengths[sequence] - queries + row % queries;
                 if (slot < 0 || slot >= slots_total || position < 0 || position >= positions) return;
                 to[(slot * positions + position) * runs + run] = from[row * runs + run];
               });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(cache_write, 256)
