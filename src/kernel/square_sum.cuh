// Device body of square_sum: a block per part, additions in a fixed order.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

template <class T>
__device__ inline void square_sum(const KernelArguments& a) {
  const long long count = a.dims[0], parts = a.dims[1], size = ((count + parts - 1) / parts + 7) / 8 * 8;
  for (long long part = blockIdx.x; part < parts; part += gridDim.x) {
    const long long begin = min(count, part * size);
    RunningSum sum;
    read_row(operand<const T>(a, 0) + begin, min(size, count - begin), [&](long long, float x) { sum.add(x * x); });
    const float total = over_block<Add>(sum.value());
    if (threadIdx.x == 0) operand<float>(a, 1)[part] = total;
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(square_sum, 256)
