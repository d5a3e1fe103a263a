// Device body of embedding_grad. Sums follow the order of the indices, without atomics, so they are reproducible bit
// for bit.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

constexpr int kTableRows = 32;  // rows of the table per block, each of which reads all indices
constexpr int kListed = 1024;   // indices that a block can sort; if there are more, it searches row by row
constexpr int kFinders = 256;   // threads of a block

// The indices that name rows [first, first + kTableRows), by row and then in order.
struct IndexList {
  int found[kListed], sorted[kListed];
  int begin[kTableRows + 1];
  int counts[kFinders + 1];
};

// Fills the list and returns how many there are; if they exceed kListed, it stores none. Each thread searches a
// contiguous range of the indices, so their order is that of the threads.
__device__ inline int list_indices(IndexList& list, const int* index, long long count, long long first) {
  const int thread = threadIdx.x, threads = blockDim.x;
  const long long stretch = (count + threads - 1) / threads;
  const long long begin = min(count, thread * stretch), end = min(count, begin + stretch);
  const auto is_ours = [=](int row) { return row >= first && row < first + kTableRows; };
  int own = 0;
  for (long long i = begin; i < end; ++i) own += is_ours(index[i]) ? 1 : 0;
  __syncthreads();  // the list of the previous rows is no longer needed
  list.counts[thread] = own;
  __syncthreads();
  if (thread == 0) {
    int before = 0;
    for (int t = 0; t < threads; ++t) {
      const int next = list.counts[t];
      list.counts[t] = before;
      before += next;
    }
    list.counts[threads] = before;
  }
  __syncthreads();
  const int total = list.counts[threads];
  if (total > kListed) return total;
  int at = list.counts[thread];
  for (long long i = begin; own > 0 && i < end; ++i)
    if (is_ours(index[i])) list.found[at++] = static_cast<int>(i);
  __syncthreads();
  // An index is placed after all indices of smaller rows, and after those of its row that were found before it.
  for (int e = thread; e < total; e += threads) {
    const int row = index[list.found[e]];
    int place = 0;
    for (int other = 0; other < total; ++other) {
      const int its = index[list.found[other]];
      place += its < row || (its == row && other < e) ? 1 : 0;
    }
    list.sorted[place] = list.found[e];
  }
  for (int r = thread; r <= kTableRows; r += threads) {
    int before = 0;
    for (int other = 0; other < total; ++other) before += index[list.found[other]] < first + r ? 1 : 0;
    list.begin[r] = before;
  }
  __syncthreads();
  return total;
}

template <class T>
__device__ inline void embedding_grad(const KernelArguments& a) {
  __shared__ IndexList list;
  const long long count = a.dims[0], width = a.dims[1], rows = a.dims[2];
  const int* const index = operand<const int>(a, 0);
  const T* const dy = operand<const T>(a, 1);
  const float beta = a.scalars[0];
  for (long long first = static_cast<long long>(blockIdx.x) * kTableRows; first < rows;
       first += static_cast<long long>(gridDim.x) * kTableRows) {
    const bool is_listed = list_indices(list, index, count, first) <= kListed;
    // Adjacent threads work along a row; if rows are short, several rows share the block.
    int shift = 0;
    while ((1 << shift) < static_cast<int>(blockDim.x) && (1 << shift) < width) ++shift;
    const int at_once = blockDim.x >> shift, lane = threadIdx.x & ((1 << shift) - 1);
    for (int r = threadIdx.x >> shift; r < kTableRows && first + r < rows; r += at_once) {
      for (long long column = lane; column < width; column += 1 << shift) {
        RunningSum sum;
        if (is_listed) {
          for (int e = list.begin[r]; e < list.begin[r + 1]; ++e) sum.add(load(dy + list.sorted[e] * width + column));
        } else {
          for (long long i = 0; i < count; ++i)
            if (index[i] == first + r) sum.add(load(dy + i * width + column));
        }
        T* const out = operand<T>(a, 2) + (first + r) * width + column;
        store(out, beta == 0 ? sum.value() : beta * load(out) + sum.value());
      }
    }
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(embedding_grad, 256)
