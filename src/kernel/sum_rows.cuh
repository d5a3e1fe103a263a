// Device body of sum_rows. The order of additions is fixed, without atomics, so sums are reproducible bit for bit.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

constexpr int kManyParts = 32;

// A block takes 4 columns per lane of one group. With many parts, 8 threads share a lane, so that few columns keep a
// GPU busy; with few parts, a thread adds them alone, without barriers.
template <class T>
__device__ inline void sum_rows(const KernelArguments& a) {
  constexpr int kWide = 4, kMaxDown = 8, kSharedColumns = 256 / kMaxDown * kWide;
  __shared__ float partial[kMaxDown][kSharedColumns];
  const long long parts = a.dims[1], count = a.dims[2], stride = a.dims[3];
  const int down_lanes = parts >= kManyParts ? kMaxDown : 1, lanes = blockDim.x / down_lanes;
  const int lane = threadIdx.x % lanes, down = threadIdx.x / lanes;
  const long long across = (count + kWide * lanes - 1) / (kWide * lanes);
  for (long long block = blockIdx.x; block < a.dims[0] * across; block += gridDim.x) {
    const long long group = divide(block, across), first = (block - group * across) * kWide * lanes;
    const T* const in = operand<const T>(a, 0) + group * parts * stride + first;
    T* const out = operand<T>(a, 1) + group * count + first;
    const int columns = static_cast<int>(min(count - first, static_cast<long long>(kWide * lanes)));
    const bool is_wide = is_aligned<kWide>(in) && is_aligned<kWide>(out) && stride % kWide == 0 && columns % kWide == 0;
    // Wide: a lane's columns are adjacent; otherwise those of adjacent lanes are.
    const int begin = is_wide ? kWide * lane : lane, step = is_wide ? 1 : lanes;
    RunningSum sums[kWide];
    if (is_wide && begin < columns) {
#pragma unroll 4
      for (long long part = down; part < parts; part += down_lanes) {
        const auto run = run_at<kWide>(in + part * stride + begin, 0);
#pragma unroll
        for (int e = 0; e < kWide; ++e) sums[e].add(load(run.elements + e));
      }
    } else if (!is_wide) {
      for (long long part = down; part < parts; part += down_lanes)
#pragma unroll
        for (int e = 0; e < kWide; ++e)
          if (begin + e * step < columns) sums[e].add(load(in + part * stride + begin + e * step));
    }
    if (down_lanes == 1) {
#pragma unroll
      for (int e = 0; e < kWide; ++e)
        if (begin + e * step < columns) store(out + begin + e * step, a.scalars[0] * sums[e].value());
      continue;
    }
    for (int e = 0; e < kWide; ++e) partial[down][begin + e * step] = sums[e].value();
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < columns) {
      RunningSum total;
      for (int i = 0; i < kMaxDown; ++i) total.add(partial[i][threadIdx.x]);
      store(out + threadIdx.x, a.scalars[0] * total.value());
    }
    __syncthreads();  // before the partial sums are written again
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(sum_rows, 256)
