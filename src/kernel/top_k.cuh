// Device body of top_k. Ranked integers are never equal, so the result is exact and reproducible.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/ranked.h"
#include "kernel/top_k.h"

namespace weir::device {

// A warp per row, whose elements stay in registers: picks the largest of the rest k times.
template <class T>
__device__ inline void pick_from_short_rows(const T* in, T* values, int* indices, long long rows, int columns, int k) {
  constexpr int kEach = kShortRow / 32;
  const int lane = threadIdx.x % 32, per_block = blockDim.x / 32;
  for (long long row = static_cast<long long>(blockIdx.x) * per_block + threadIdx.x / 32; row < rows;
       row += static_cast<long long>(gridDim.x) * per_block) {
    unsigned long long left[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int column = i * 32 + lane;
      left[i] = column < columns ? ranked(load(in + row * columns + column), column) : 0;
    }
    for (int pick = 0; pick < k; ++pick) {
      unsigned long long best = 0;
#pragma unroll
      for (int i = 0; i < kEach; ++i) best = max(best, left[i]);
      best = largest_of_warp(best, 32);
#pragma unroll
      for (int i = 0; i < kEach; ++i) left[i] = left[i] == best ? 0 : left[i];
      if (lane == 0) {
        values[row * k + pick] = in[row * columns + index_of(best)];
        indices[row * k + pick] = index_of(best);
      }
    }
  }
}

// The largest threshold that at least k elements reach, found bit by bit from the top. Calls count(threshold), which
// must return the same to all threads.
template <class Count>
__device__ inline unsigned long long threshold_of(int k, Count count) {
  unsigned long long threshold = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const unsigned long long higher = threshold | 1ull << bit;
    const int reached = count(higher);
    if (reached >= k) threshold = higher;
    if (reached == k) break;
  }
  return threshold;
}

// A block per row. The k-th largest of the threads' own maxima is a bound that k threads reach, so the row's k largest
// are among the elements of those threads that reach it: hardly more than k in any order of a row, because threads take
// turns along it. If the data exceed the room, counting elements finds the exact bound.
template <class T>
__device__ inline void pick_from_row(const T* in, T* values, int* indices, long long columns, int k) {
  constexpr int kRoom = 4096;
  __shared__ unsigned long long found[kRoom];
  __shared__ int found_count;
  unsigned long long best = 0;
  read_row(in, columns, [&](long long column, float x) { best = max(best, ranked(x, column)); });
  unsigned long long threshold =
      threshold_of(k, [&](unsigned long long bound) { return __syncthreads_count(static_cast<int>(best >= bound)); });
  const auto collect = [&] {
    if (threadIdx.x == 0) found_count = 0;
    __syncthreads();
    if (best >= threshold) {
      read_row(in, columns, [&](long long column, float x) {
        const unsigned long long element = ranked(x, column);
        if (element < threshold) return;
        const int at = atomicAdd(&found_count, 1);
        if (at < kRoom) found[at] = element;
      });
    }
    __syncthreads();
  };
  collect();
  if (found_count > kRoom) {
    threshold = threshold_of(k, [&](unsigned long long bound) {
      float reached = 0;  // exact: rows of 2^24 and more elements are far too long for one block
      read_row(in, columns, [&](long long column, float x) { reached += ranked(x, column) >= bound ? 1.0f : 0.0f; });
      return static_cast<int>(over_block<Add>(reached));
    });
    __syncthreads();
    collect();
  }
  // An element's place in the result is the number of larger ones; the order in which they were found does not matter.
  const int count = found_count;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const unsigned long long element = found[i];
    int larger = 0;
    for (int other = 0; other < count; ++other) larger += found[other] > element ? 1 : 0;
    if (larger >= k) continue;
    values[larger] = in[index_of(element)];
    indices[larger] = index_of(element);
  }
  __syncthreads();  // before the next row's elements are written
}

template <class T>
__device__ inline void top_k(const KernelArguments& a) {
  const T* const in = operand<const T>(a, 0);
  T* const values = operand<T>(a, 1);
  int* const indices = operand<int>(a, 2);
  const long long rows = a.dims[0], columns = a.dims[1];
  const int k = static_cast<int>(a.dims[2]);
  if (columns <= kShortRow) return pick_from_short_rows(in, values, indices, rows, static_cast<int>(columns), k);
  for (long long row = blockIdx.x; row < rows; row += gridDim.x)
    pick_from_row(in + row * columns, values + row * k, indices + row * k, columns, k);
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(top_k, 1024)
