// Device body of route: one block. Each warp counts a part of the assignments, the counts become places, and each warp
// walks its part again in order. No atomics on places, so the result is reproducible.
#pragma once

#include "kernel/device_types.cuh"

namespace weir::device {

// The lanes of this warp that have the same id, found one bit of the id at a time.
__device__ inline unsigned long long lanes_with(int id, bool is_valid) {
  unsigned long long same = ballot(is_valid);
  for (int bit = 0; bit < 8; ++bit) {
    const bool is_set = (id >> bit & 1) != 0;
    const unsigned long long set = ballot(is_set);
    same &= is_set ? set : ~set;
  }
  return same;
}

template <class T>
__device__ inline void route(const KernelArguments& a) {
  constexpr int kMaxWarps = 32, kMaxExperts = 256;
  __shared__ int counts[kMaxWarps][kMaxExperts];  // by warp; later the places of its next assignments
  __shared__ int totals[kMaxExperts], starts[kMaxExperts];
  const int assignments = static_cast<int>(a.dims[0]), experts = static_cast<int>(a.dims[1]);
  const int picks = static_cast<int>(a.dims[2]);
  const int* const ids = operand<const int>(a, 0);
  int* const offsets = operand<int>(a, 1);
  int* const slots = operand<int>(a, 2);
  int* const sources = operand<int>(a, 3);
  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize, warps = blockDim.x / warpSize;
  const int part = (assignments + warps * warpSize - 1) / (warps * warpSize) * warpSize;
  const int begin = min(assignments, warp * part), end = min(assignments, begin + part);

  for (int i = threadIdx.x; i < kMaxWarps * kMaxExperts; i += blockDim.x) counts[i / kMaxExperts][i % kMaxExperts] = 0;
  __syncthreads();
  for (int at = begin + lane; at < end; at += warpSize) {
    const int id = ids[at];
    if (0 <= id && id < experts) atomicAdd(&counts[warp][id], 1);
  }
  __syncthreads();
  // Per expert: the count of earlier warps, which is where this warp's slots begin.
  for (int expert = threadIdx.x; expert < experts; expert += blockDim.x) {
    int before = 0;
    for (int w = 0; w < warps; ++w) {
      const int own = counts[w][expert];
      counts[w][expert] = before;
      before += own;
    }
    totals[expert] = before;
  }
  __syncthreads();
  for (int expert = threadIdx.x; expert <= experts; expert += blockDim.x) {
    int before = 0;
    for (int earlier = 0; earlier < expert; ++earlier) before += totals[earlier];
    if (expert < experts) starts[expert] = before;
    offsets[expert] = before;
  }
  __syncthreads();
  int next = begin + lane < end ? ids[begin + lane] : -1;
  for (int base = begin; base < end; base += warpSize) {
    const int at = base + lane, id = next;
    next = at + warpSize < end ? ids[at + warpSize] : -1;  // in flight while this one is placed
    const bool is_valid = at < end && 0 <= id && id < experts;
    const unsigned long long same = lanes_with(id, is_valid), before = same & ((1ull << lane) - 1);
    const int slot = is_valid ? counts[warp][id] + __popcll(before) : -1;
    sync_warp();
    if (is_valid && before == 0) counts[warp][id] += __popcll(same);
    sync_warp();
    if (at < end) slots[at] = slot;
    if (is_valid) sources[starts[id] + slot] = at / picks;
  }
}

}  // namespace weir::device

WEIR_KERNEL(route, i32, int, 1024)
