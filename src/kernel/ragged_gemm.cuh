// Device body of ragged_gemm: a block per tile of C, with tiles of A and B in two shared buffers; the next ones are
// loaded through registers while the current ones are multiplied. Blocks beyond an expert's rows end at once.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/ragged_gemm.h"

#if !defined(__HIPCC__)
#include <mma.h>
#endif

namespace weir::device {

// One launch as seen by a block.
template <class T>
struct RaggedBlock {
  __device__ explicit RaggedBlock(const KernelArguments& a)
      : n(static_cast<int>(a.dims[1])),
        k(static_cast<int>(a.dims[2])),
        has_gelu(has_gelu_in(a.dims[3])),
        a(operand<const T>(a, 0)),
        b(operand<const T>(a, 1)),
        c(operand<T>(a, 3)) {
    const int* const offsets = operand<const int>(a, 2) + expert_in(a.dims[3]);
    const long long capacity = a.dims[0], own = offsets[1] - offsets[0];
    const bool is_grouped = is_grouped_in(a.dims[3]);
    const long long rows_of_a = is_grouped ? static_cast<long long>(a.scalars[1]) : capacity;
    const long long begin = is_grouped ? min(max(0ll, static_cast<long long>(offsets[0])), rows_of_a) : 0;
    rows = static_cast<int>(max(0ll, min(min(capacity, own), rows_of_a - begin)));
    this->a += begin * k;
    // Adjacent blocks share columns of B, which is the larger operand.
    const int down = static_cast<int>((capacity + kRaggedRows - 1) / kRaggedRows);
    first_row = static_cast<int>(blockIdx.x % down) * kRaggedRows;
    first_column = static_cast<int>(blockIdx.x / down) * kRaggedColumns;
  }

  int rows, n, k, first_row, first_column;
  bool has_gelu;
  const T* a;
  const T* b;
  T* c;
};

__device__ inline float ragged_result(float sum, bool has_gelu) {
  return has_gelu ? 0.5f * sum * erfcf(-sum * 0.70710678f) : sum;  // 1 / sqrt(2), as in gelu
}

// kCount elements of a row of a matrix of `rows` x `columns`; zeros outside. If is_wide, they are either all within the
// row or all outside.
template <int kCount, class T>
__device__ inline Run<T, kCount> load_run(const T* matrix, int row, int column, int rows, int columns, bool is_wide) {
  const T* const from = matrix + static_cast<long long>(row) * columns + column;
  if (is_wide && row < rows && column < columns) return run_at<kCount>(from, 0);
  Run<T, kCount> run;
#pragma unroll
  for (int e = 0; e < kCount; ++e) {
    if (row < rows && column + e < columns) {
      run.elements[e] = from[e];
    } else {
      store(run.elements + e, 0.0f);
    }
  }
  return run;
}

// Plain arithmetic in float: 4 x 8 sums per thread.
template <class T>
__device__ inline void multiply_plain(const RaggedBlock<T>& block) {
  constexpr int kDepth = 16, kPaddedRows = kRaggedRows + 4;
  alignas(16) __shared__ float tile_a[2][kDepth][kPaddedRows];  // transposed
  alignas(16) __shared__ float tile_b[2][kDepth][kRaggedColumns];
  const int thread = threadIdx.x;
  const bool is_wide_a = block.k % 4 == 0 && is_aligned<4>(block.a);
  const bool is_wide_b = block.n % 4 == 0 && is_aligned<4>(block.b);
  const int a_row = thread / 4, a_depth = thread % 4 * 4;       // 64 x 16
  const int b_depth = thread / 32, b_column = thread % 32 * 4;  // 8 x 128, twice
  Run<T, 4> next_a, next_b[2];
  const auto fetch = [&](int depth) {
    next_a = load_run<4>(block.a, block.first_row + a_row, depth + a_depth, block.rows, block.k, is_wide_a);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      next_b[half] =
          load_run<4>(block.b, depth + b_depth + 8 * half, block.first_column + b_column, block.k, block.n, is_wide_b);
  };
  const auto keep = [&](int buffer) {
#pragma unroll
    for (int e = 0; e < 4; ++e) tile_a[buffer][a_depth + e][a_row] = load(next_a.elements + e);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Run<float, 4> floats;
#pragma unroll
      for (int e = 0; e < 4; ++e) floats.elements[e] = load(next_b[half].elements + e);
      run_at<4>(&tile_b[buffer][b_depth + 8 * half][b_column], 0) = floats;
    }
  };
  const int row = thread / 16 * 4, column = thread % 16 * 4;  // columns 0..63 and 64..127
  float sums[4][8] = {};
  fetch(0);
  keep(0);
  __syncthreads();
  int buffer = 0;
  for (int depth = 0; depth < block.k; depth += kDepth, buffer ^= 1) {
    const bool has_next = depth + kDepth < block.k;
    if (has_next) fetch(depth + kDepth);
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const Run<float, 4> left = run_at<4>(&tile_a[buffer][d][row], 0);
      const Run<float, 4> right[2] = {run_at<4>(&tile_b[buffer][d][column], 0),
                                      run_at<4>(&tile_b[buffer][d][column + 64], 0)};
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] += left.elements[i] * right[j / 4].elements[j % 4];
    }
    if (has_next) keep(buffer ^ 1);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int to_row = block.first_row + row + i;
    if (to_row >= block.rows) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int to_column = block.first_column + column + j / 4 * 64 + j % 4;
      if (to_column < block.n)
        store(block.c + static_cast<long long>(to_row) * block.n + to_column,
              ragged_result(sums[i][j], block.has_gelu));
    }
  }
}

#if !defined(__HIPCC__)

// Matrix units: 8 warps in 2 rows of 4, each with 32 x 32 of the tile.
template <class T>
__device__ inline void multiply_by_matrix_units(const RaggedBlock<T>& block) {
  namespace wmma = nvcuda::wmma;
  // Rows are padded by 16 bytes, so that those of a fragment start in different banks.
  constexpr int kDepth = 32, kStrideA = kDepth + 8, kStrideB = kRaggedColumns + 8, kStrideC = 20;
  alignas(32) __shared__ T tile_a[2][kRaggedRows * kStrideA];
  alignas(32) __shared__ T tile_b[2][kDepth * kStrideB];
  alignas(32) __shared__ float stage[kRaggedThreads / 32][16 * kStrideC];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const bool is_wide_a = block.k % 8 == 0 && is_aligned<8>(block.a);
  const bool is_wide_b = block.n % 8 == 0 && is_aligned<8>(block.b);
  const int a_row = thread / 4, a_depth = thread % 4 * 8;       // 64 x 32
  const int b_depth = thread / 16, b_column = thread % 16 * 8;  // 16 x 128, twice
  Run<T, 8> next_a, next_b[2];
  const auto fetch = [&](int depth) {
    next_a = load_run<8>(block.a, block.first_row + a_row, depth + a_depth, block.rows, block.k, is_wide_a);
#pragma unroll
    for (int half = 0; half < 2; ++half)
      next_b[half] =
          load_run<8>(block.b, depth + b_depth + 16 * half, block.first_column + b_column, block.k, block.n, is_wide_b);
  };
  const auto keep = [&](int buffer) {
    run_at<8>(tile_a[buffer] + a_row * kStrideA + a_depth, 0) = next_a;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      run_at<8>(tile_b[buffer] + (b_depth + 16 * half) * kStrideB + b_column, 0) = next_b[half];
  };
  const int row = warp / 4 * 32, column = warp % 4 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
  fetch(0);
  keep(0);
  __syncthreads();
  int buffer = 0;
  for (int depth = 0; depth < block.k; depth += kDepth, buffer ^= 1) {
    const bool has_next = depth + kDepth < block.k;
    if (has_next) fetch(depth + kDepth);
#pragma unroll
    for (int d = 0; d < kDepth; d += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> right[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(left[i], tile_a[buffer] + (row + 16 * i) * kStrideA + d, kStrideA);
        wmma::load_matrix_sync(right[i], tile_b[buffer] + d * kStrideB + column + 16 * i, kStrideB);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
    }
    if (has_next) keep(buffer ^ 1);
    __syncthreads();
  }
  // The assignment of sums to lanes is not documented, so they pass through shared memory.
  const bool is_wide_c = block.n % 8 == 0 && is_aligned<8>(block.c);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(stage[warp], sums[i][j], kStrideC, wmma::mem_row_major);
      sync_warp();
      const int to_row = block.first_row + row + 16 * i + lane / 2;
      const int to_column = block.first_column + column + 16 * j + lane % 2 * 8;
      const float* const from = stage[warp] + lane / 2 * kStrideC + lane % 2 * 8;
      T* const to = block.c + static_cast<long long>(to_row) * block.n + to_column;
      Run<T, 8> run;
#pragma unroll
      for (int e = 0; e < 8; ++e) store(run.elements + e, ragged_result(from[e], block.has_gelu));
      if (is_wide_c && to_row < block.rows && to_column < block.n) {
        run_at<8>(to, 0) = run;
      } else if (to_row < block.rows) {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (to_column + e < block.n) to[e] = run.elements[e];
      }
      sync_warp();
    }
  }
}

#endif

template <class T>
__device__ inline void ragged_gemm(const KernelArguments& a) {
  const RaggedBlock<T> block(a);
  if (block.first_row >= block.rows) return;
#if !defined(__HIPCC__)
  if constexpr (sizeof(T) == 2) {
    multiply_by_matrix_units(block);
  } else {
    multiply_plain(block);
  }
#else
  multiply_plain(block);
#endif
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(ragged_gemm, 256, 2)
