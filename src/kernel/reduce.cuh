// Device body of reduce. Threads and warps add in a fixed order, without atomics, so sums are reproducible bit for bit.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/running_sum.h"

namespace weir::device {

constexpr int kColumnLanes = 32;
constexpr int kRowLanes = 8;

// 32 adjacent columns, 8 threads down each: reads stay contiguous and few columns still keep a block busy.
template <class T>
__device__ inline void sum_columns(const T* in, T* out, long long rows, long long columns) {
  __shared__ float partial[kRowLanes][kColumnLanes];
  const int lane = threadIdx.x % kColumnLanes, down = threadIdx.x / kColumnLanes;
  const long long column = static_cast<long long>(blockIdx.x) * kColumnLanes + lane;
  RunningSum sum;
  if (column < columns)
    for (long long row = down; row < rows; row += kRowLanes) sum.add(load(in + row * columns + column));
  partial[down][lane] = sum.value();
  __syncthreads();
  if (down != 0 || column >= columns) return;
  RunningSum total;
  for (int i = 0; i < kRowLanes; ++i) total.add(partial[i][lane]);
  store(out + column, total.value());
}

// Short rows: 32 threads per row, no barrier.
template <class T>
__device__ inline void sum_short_rows(const T* in, T* out, long long rows, long long columns) {
  const int lane = threadIdx.x % 32, per_block = blockDim.x / 32;
  const long long row = static_cast<long long>(blockIdx.x) * per_block + threadIdx.x / 32;
  if (row >= rows) return;
  RunningSum sum;
  for (long long c = lane; c < columns; c += 32) sum.add(load(in + row * columns + c));
  const float total = over_warp<Add>(sum.value(), 32);
  if (lane == 0) store(out + row, total);
}

template <class T>
__device__ inline void sum_long_rows(const T* in, T* out, long long rows, long long columns) {
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    RunningSum sum;
    read_row(in + row * columns, columns, [&](long long, float x) { sum.add(x); });
    const float total = over_block<Add>(sum.value());
    if (threadIdx.x == 0) store(out + row, total);
  }
}

template <class T>
__device__ inline void reduce(const KernelArguments& a) {
  const T* const in = operand<const T>(a, 0);
  T* const out = operand<T>(a, 1);
  const long long rows = a.dims[0], columns = a.dims[1];
  if (a.dims[2] != 1) {
    sum_columns(in, out, rows, columns);
  } else if (columns <= 128) {
    sum_short_rows(in, out, rows, columns);
  } else {
    sum_long_rows(in, out, rows, columns);
  }
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(reduce, 1024)
