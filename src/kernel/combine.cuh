// Device body of combine: threads along the width of a token.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void combine(const KernelArguments& a) {
  const int* const ids = operand<const int>(a, 1);
  const int* const slots = operand<const int>(a, 2);
  const T* const weights = operand<const T>(a, 3);
  const int picks = static_cast<int>(a.dims[2]);
  const long long capacity = a.dims[3], experts = static_cast<long long>(a.scalars[0]);
  map_row_runs(operand<const T>(a, 0), operand<T>(a, 4), a.dims[0], a.dims[1],
               [=](auto from, auto to, long long token, long long run, long long runs) {
                 constexpr int kWidth = sizeof(to->elements) / sizeof(T);
                 float sums[kWidth] = {};
                 for (long long pick = token * picks; pick < (token + 1) * picks; ++pick) {
                   const long long id = ids[pick], slot = slots[pick];
                   if (id < 0 || id >= experts || slot < 0 || slot >= capacity) continue;
                   const float weight = load(weights + pick);
                   const auto row = from[(id * capacity + slot) * runs + run];
#pragma unroll
                   for (int e = 0; e < kWidth; ++e) sums[e] += weight * load(row.elements + e);
                 }
                 Run<T, kWidth> result;
#pragma unroll
                 for (int e = 0; e < kWidth; ++e) store(result.elements + e, sums[e]);
                 to[token * runs + run] = result;
               });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(combine, 256)
