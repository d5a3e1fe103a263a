// Loops of device bodies: element-wise passes, rows picked by index, sums and maxima over a block.
#pragma once

#include "kernel/device_types.cuh"

namespace weir::device {

// N adjacent elements that move together.
template <class T, int N>
struct alignas(N * sizeof(T)) Run {
  T elements[N];
};
template <int N, class T>
__device__ inline bool is_aligned(const T* pointer) {
  return reinterpret_cast<unsigned long long>(pointer) % sizeof(Run<T, N>) == 0;
}
template <int N, class T>
__device__ inline const Run<T, N>& run_at(const T* from, long long index) {
  return reinterpret_cast<const Run<T, N>*>(from)[index];
}
template <int N, class T>
__device__ inline Run<T, N>& run_at(T* from, long long index) {
  return reinterpret_cast<Run<T, N>*>(from)[index];
}

// out = function(in), run by run; in and out may be the same. A launch with at least one thread per element, as small
// ones have, takes a short path; others move 16 bytes at a time if the pointers allow it.
template <class T, class Function>
__device__ inline void map_runs(const T* in, T* out, long long count, Function function) {
  const long long first = global_thread(), stride = global_threads();
  if (count <= stride) {
    if (first < count) run_at<1>(out, first) = function(run_at<1>(in, first));
    return;
  }
  constexpr int kWide = 16 / sizeof(T);
  const long long wide = is_aligned<kWide>(in) && is_aligned<kWide>(out) ? count / kWide : 0;
  for (long long i = first; i < wide; i += stride) run_at<kWide>(out, i) = function(run_at<kWide>(in, i));
  for (long long i = wide * kWide + first; i < count; i += stride) run_at<1>(out, i) = function(run_at<1>(in, i));
}

// The same with function(float (&values)[N]), which changes the values in place, between one load and one rounding.
template <class T, class Function>
__device__ inline void map_floats(const T* in, T* out, long long count, Function function) {
  map_runs(in, out, count, [&](auto run) {
    constexpr int kCount = sizeof(run.elements) / sizeof(T);
    float values[kCount];
#pragma unroll
    for (int e = 0; e < kCount; ++e) values[e] = load(run.elements + e);
    function(values);
#pragma unroll
    for (int e = 0; e < kCount; ++e) store(run.elements + e, values[e]);
    return run;
  });
}

// A 64-bit division takes a GPU about 70 instructions, a 32-bit one a third of that. Neither operand may be negative.
__device__ inline long long divide(long long a, long long b) {
  return ((a | b) >> 32) == 0 ? static_cast<unsigned>(a) / static_cast<unsigned>(b) : a / b;
}

template <int N, class T, class Function>
__device__ inline void zip_run(const T* a, const T* b, T* out, Function function) {
  const Run<T, N> x = run_at<N>(a, 0), y = run_at<N>(b, 0);
  Run<T, N> result;
#pragma unroll
  for (int e = 0; e < N; ++e) store(result.elements + e, function(load(x.elements + e), load(y.elements + e)));
  run_at<N>(out, 0) = result;
}
// out = function(a, b) element by element, with one rounding; b repeats after every `period` elements.
template <class T, class Function>
__device__ inline void zip_floats(const T* a, const T* b, T* out, long long count, long long period,
                                  Function function) {
  const long long first = global_thread(), stride = global_threads();
  constexpr int kWide = 16 / sizeof(T);
  const bool is_wide = count > stride && is_aligned<kWide>(a) && is_aligned<kWide>(b) && is_aligned<kWide>(out) &&
                       (period == count || period % kWide == 0);
  const long long wide = is_wide ? count / kWide * kWide : 0;
  const auto within = [=](long long i) { return period == count ? i : i - divide(i, period) * period; };
  for (long long i = first * kWide; i < wide; i += stride * kWide)
    zip_run<kWide>(a + i, b + within(i), out + i, function);
  for (long long i = wide + first; i < count; i += stride) zip_run<1>(a + i, b + within(i), out + i, function);
}

// Calls function(column, run) for a row that the block shares, four elements at a time if it is aligned.
template <class T, class Function>
__device__ inline void over_row(const T* row, long long columns, bool is_wide, Function function) {
  const long long wide = is_wide ? columns / 4 : 0;
  for (long long i = threadIdx.x; i < wide; i += blockDim.x) function(4 * i, run_at<4>(row, i));
  for (long long i = 4 * wide + threadIdx.x; i < columns; i += blockDim.x) function(i, run_at<1>(row, i));
}
// Calls function(column, float) for each element of a row.
template <class T, class Function>
__device__ inline void read_row(const T* row, long long columns, Function function) {
  over_row(row, columns, is_aligned<4>(row), [&](long long column, auto run) {
#pragma unroll
    for (int e = 0; e < static_cast<int>(sizeof(run.elements) / sizeof(T)); ++e)
      function(column + e, load(run.elements + e));
  });
}
// out = function(column, float) for each element of a row; in and out may be the same.
template <class T, class Function>
__device__ inline void map_row(const T* in, T* out, long long columns, Function function) {
  over_row(in, columns, is_aligned<4>(in) && is_aligned<4>(out), [&](long long column, auto run) {
    constexpr int kCount = sizeof(run.elements) / sizeof(T);
#pragma unroll
    for (int e = 0; e < kCount; ++e) store(run.elements + e, function(column + e, load(run.elements + e)));
    run_at<kCount>(out + column, 0) = run;
  });
}

// The same with two rows: function(column, x, y).
template <class T, class Function>
__device__ inline void read_rows(const T* a, const T* b, long long columns, Function function) {
  over_row(a, columns, is_aligned<4>(a) && is_aligned<4>(b), [&](long long column, auto run) {
    constexpr int kCount = sizeof(run.elements) / sizeof(T);
    const auto other = run_at<kCount>(b + column, 0);
#pragma unroll
    for (int e = 0; e < kCount; ++e) function(column + e, load(run.elements + e), load(other.elements + e));
  });
}
template <class T, class Function>
__device__ inline void zip_rows(const T* a, const T* b, T* out, long long columns, Function function) {
  const bool is_wide = is_aligned<4>(a) && is_aligned<4>(b) && is_aligned<4>(out);
  over_row(a, columns, is_wide, [&](long long column, auto run) {
    constexpr int kCount = sizeof(run.elements) / sizeof(T);
    const auto other = run_at<kCount>(b + column, 0);
#pragma unroll
    for (int e = 0; e < kCount; ++e)
      store(run.elements + e, function(column + e, load(run.elements + e), load(other.elements + e)));
    run_at<kCount>(out + column, 0) = run;
  });
}
// Writes zeros to the columns from `begin` on.
template <class T>
__device__ inline void clear_row(T* out, long long begin, long long columns) {
  const long long first_wide = is_aligned<4>(out) ? (begin + 3) / 4 * 4 : columns;
  for (long long c = begin + threadIdx.x; c < min(first_wide, columns); c += blockDim.x) store(out + c, 0.0f);
  Run<T, 4> zeros;
#pragma unroll
  for (int e = 0; e < 4; ++e) store(zeros.elements + e, 0.0f);
  long long c = first_wide + 4 * static_cast<long long>(threadIdx.x);
  for (; c + 4 <= columns; c += 4 * static_cast<long long>(blockDim.x)) run_at<4>(out + c, 0) = zeros;
  for (; c < columns; ++c) store(out + c, 0.0f);
}

// Calls function(row, column) for each element of a matrix: adjacent threads along a row, several rows per block if
// rows are short, so that the row's index needs no division.
template <class Function>
__device__ inline void map_rows(long long rows, long long width, Function function) {
  int shift = 0;
  while ((1 << shift) < static_cast<int>(blockDim.x) && (1 << shift) < width) ++shift;
  const int per_block = blockDim.x >> shift;
  const int lane = threadIdx.x & ((1 << shift) - 1);
  for (long long row = static_cast<long long>(blockIdx.x) * per_block + (threadIdx.x >> shift); row < rows;
       row += static_cast<long long>(gridDim.x) * per_block)
    for (long long column = lane; column < width; column += 1 << shift) function(row, column);
}

// Calls function(in, out, row, run, runs_per_row) for each run of rows that have the same width in `in` and `out`, with
// both as pointers to runs: 16 bytes if width and pointers allow it, else single elements.
template <class T, class Function>
__device__ inline void map_row_runs(const T* in, T* out, long long rows, long long width, Function function) {
  constexpr int kWide = 16 / sizeof(T);
  const auto as = [&](auto* wide_in, auto* wide_out, long long runs) {
    map_rows(rows, runs, [=](long long row, long long run) { function(wide_in, wide_out, row, run, runs); });
  };
  if (width % kWide == 0 && is_aligned<kWide>(in) && is_aligned<kWide>(out)) {
    as(&run_at<kWide>(in, 0), &run_at<kWide>(out, 0), width / kWide);
  } else {
    as(&run_at<1>(in, 0), &run_at<1>(out, 0), width);
  }
}

struct Add {
  __device__ static float of(float a, float b) { return a + b; }
};
struct Larger {
  __device__ static float of(float a, float b) { return fmaxf(a, b); }
};

template <class Operation>
__device__ inline float over_warp(float value, int width) {
  for (int mask = width / 2; mask > 0; mask /= 2) value = Operation::of(value, shuffle_xor(value, mask));
  return value;
}

__device__ inline unsigned long long largest_of_warp(unsigned long long value, int width) {
  for (int mask = width / 2; mask > 0; mask /= 2) value = max(value, shuffle_xor(value, mask));
  return value;
}

// Returns the same result to every thread of the block, combined in a fixed order. All threads must call it.
template <class Operation>
__device__ inline float over_block(float value) {
  __shared__ float partial[1024 / 32];
  const int width = min(warpSize, static_cast<int>(blockDim.x)), warps = blockDim.x / width;
  value = over_warp<Operation>(value, width);
  if (warps == 1) return value;
  __syncthreads();  // after the last call's partial results were read
  if (threadIdx.x % width == 0) partial[threadIdx.x / width] = value;
  __syncthreads();
  value = partial[0];
  for (int warp = 1; warp < warps; ++warp) value = Operation::of(value, partial[warp]);
  return value;
}

}  // namespace weir::device
