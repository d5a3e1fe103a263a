// Device body of weighted_bce: one block, because there is one sum over one batch of scores.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

template <class T>
__device__ inline void weighted_bce(const KernelArguments& a) {
  const float scale = a.scalars[0];
  RunningSum sum;
  for (long long i = threadIdx.x; i < a.dims[0]; i += blockDim.x) {
    const float score = load(operand<const T>(a, 0) + i), target = operand<const float>(a, 1)[i];
    const float weight = operand<const float>(a, 2)[i];
    const float tail = expf(-fabsf(score)), less = tail / (1 + tail), more = 1 / (1 + tail);
    const float positive = score > 0 ? more : less, negative = score > 0 ? less : more;
    store(operand<T>(a, 3) + i, scale * weight * ((1 - target) * positive - target * negative));
    sum.add(weight * ((score > 0 ? (1 - target) * score : -target * score) + log1pf(tail)));
  }
  const float total = over_block<Add>(sum.value());
  if (threadIdx.x == 0) operand<float>(a, 4)[0] = scale * total;
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(weighted_bce, 256)
