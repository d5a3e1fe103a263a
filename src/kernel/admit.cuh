// Device body of admit: one block, which counts free slots in order.
#pragma once

#include "kernel/device_types.cuh"

namespace weir::device {

template <class T>
__device__ inline void admit(const KernelArguments& a) {
  __shared__ int free_of[1024 / 32];  // by warp
  const int slots = static_cast<int>(a.dims[0]), prompts = static_cast<int>(a.dims[1]);
  const int* const lengths = operand<const int>(a, 0);
  const int* const remaining = operand<const int>(a, 1);
  int* const slot_of = operand<int>(a, 4);
  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize, warps = blockDim.x / warpSize;
  int taken = 0;
  for (int base = 0; base < slots; base += blockDim.x) {
    const int slot = base + threadIdx.x;
    const bool is_free = slot < slots && lengths[slot] == 0;
    const unsigned long long free = ballot(is_free);
    if (lane == 0) free_of[warp] = __popcll(free);
    __syncthreads();
    int prompt = taken + __popcll(free & ((1ull << lane) - 1));
    for (int w = 0; w < warps; ++w) {
      if (w < warp) prompt += free_of[w];
      taken += free_of[w];
    }
    const bool is_taken = is_free && prompt < prompts;
    if (is_taken) slot_of[prompt] = slot;
    if (slot < slots) {
      operand<int>(a, 2)[slot] = is_taken ? static_cast<int>(a.dims[2]) + 1 : lengths[slot];
      operand<int>(a, 3)[slot] = is_taken ? static_cast<int>(a.dims[3]) : remaining[slot];
    }
    __syncthreads();  // before the next slots' counts are written
  }
  for (int prompt = taken + threadIdx.x; prompt < prompts; prompt += blockDim.x) slot_of[prompt] = -1;
}

}  // namespace weir::device

WEIR_KERNEL(admit, i32, int, 256)
