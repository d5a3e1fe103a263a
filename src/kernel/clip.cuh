// Device body of clip: one block, additions in a fixed order.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

__device__ inline void clip(const KernelArguments& a) {
  RunningSum sum;
  read_row(operand<const float>(a, 0), a.dims[0], [&](long long, float square) { sum.add(square); });
  const float norm = sqrtf(over_block<Add>(sum.value()));
  if (threadIdx.x != 0) return;
  float* const state = operand<float>(a, 1);
  const float limit = a.scalars[0];
  state[0] += 1;
  state[1] = limit > 0 ? fminf(1.0f, limit / (norm + 1e-6f)) : 1.0f;
}

}  // namespace weir::device

extern "C" __global__ void __launch_bounds__(256) weir_clip_f32(const weir::KernelArguments a) {
  weir::device::clip(a);
}
