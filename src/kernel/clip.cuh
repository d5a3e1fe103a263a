// Device body of clip: one block, additions in a fixed order.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

// As in clip.cpp: {sums, decay, warm-up steps, total steps} and {limit, rate, least rate}.
__device__ inline float rate_after(float done, const KernelArguments& a) {
  const float warmup = static_cast<float>(a.dims[2]), total = static_cast<float>(a.dims[3]);
  const float rate = a.scalars[1], least = a.scalars[2];
  if (done < warmup) return rate * ((done + 1) / warmup);
  if (a.dims[1] == 0) return rate;
  const float progress = fminf(1.0f, (done - warmup) / fmaxf(1.0f, total - warmup));
  const float left = a.dims[1] == 2 ? 0.5f + 0.5f * cosf(3.14159265f * progress) : 1 - progress;
  return least + (rate - least) * left;
}

__device__ inline void clip(const KernelArguments& a) {
  RunningSum sum;
  read_row(operand<const float>(a, 0), a.dims[0], [&](long long, float square) { sum.add(square); });
  const float norm = sqrtf(over_block<Add>(sum.value()));
  if (threadIdx.x != 0) return;
  float* const state = operand<float>(a, 1);
  const float limit = a.scalars[0];
  state[2] = rate_after(state[0], a);
  state[0] += 1;
  state[1] = limit > 0 ? fminf(1.0f, limit / (norm + 1e-6f)) : 1.0f;
}

}  // namespace weir::device

extern "C" __global__ void __launch_bounds__(256) weir_clip_f32(const weir::KernelArguments a) {
  weir::device::clip(a);
}
