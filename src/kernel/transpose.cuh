// Device body of transpose: single elements are exchanged through shared memory, longer runs are copied whole.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <int Size>
struct BitsOf;
template <>
struct BitsOf<2> {
  using Type = unsigned short;
};
template <>
struct BitsOf<4> {
  using Type = unsigned;
};

// Squares of 64 x 64 by 256 threads: 16 loads each are in flight before the first is needed.
template <class Bits>
__device__ inline void transpose_squares(const Bits* in, Bits* out, long long batch, long long rows,
                                         long long columns) {
  constexpr int kSide = 64, kLanes = 32, kDown = 256 / kLanes;
  // A row is an odd number of banks long, so that a column is spread over all of them.
  __shared__ Bits square[kSide][kSide + 4 / sizeof(Bits)];
  const int lane = threadIdx.x % kLanes, down = threadIdx.x / kLanes;
  const long long squares_down = (rows + kSide - 1) / kSide, squares_across = (columns + kSide - 1) / kSide;
  for (long long block = blockIdx.x; block < batch * squares_down * squares_across; block += gridDim.x) {
    const long long line = divide(block, squares_across), matrix = divide(line, squares_down);
    const long long column = (block - line * squares_across) * kSide, row = (line - matrix * squares_down) * kSide;
    const Bits* const from = in + matrix * rows * columns;
    Bits* const to = out + matrix * rows * columns;
#pragma unroll
    for (int r = 0; r < kSide; r += kDown)
#pragma unroll
      for (int c = 0; c < kSide; c += kLanes)
        if (row + r + down < rows && column + c + lane < columns)
          square[r + down][c + lane] = from[(row + r + down) * columns + column + c + lane];
    __syncthreads();
#pragma unroll
    for (int c = 0; c < kSide; c += kDown)
#pragma unroll
      for (int r = 0; r < kSide; r += kLanes)
        if (row + r + lane < rows && column + c + down < columns)
          to[(column + c + down) * rows + row + r + lane] = square[r + lane][c + down];
    __syncthreads();  // before the square is written again
  }
}

// Writes are contiguous, reads start at each run.
template <class Unit>
__device__ inline void transpose_runs(const KernelArguments& a, long long width) {
  const long long batch = a.dims[0], rows = a.dims[1], columns = a.dims[2];
  const Unit* const in = operand<const Unit>(a, 0);
  Unit* const out = operand<Unit>(a, 1);
  map_rows(batch * rows * columns, width, [=](long long to, long long unit) {
    const long long above = divide(to, rows), matrix = divide(above, columns);
    const long long row = to - above * rows, column = above - matrix * columns;
    out[to * width + unit] = in[((matrix * rows + row) * columns + column) * width + unit];
  });
}

template <class T>
__device__ inline void transpose(const KernelArguments& a) {
  using Bits = typename BitsOf<sizeof(T)>::Type;
  const long long bytes = a.dims[3] * static_cast<long long>(sizeof(T));
  if (a.dims[3] == 1) {
    transpose_squares(operand<const Bits>(a, 0), operand<Bits>(a, 1), a.dims[0], a.dims[1], a.dims[2]);
  } else if (bytes % 16 == 0 && is_aligned<1>(operand<const uint4>(a, 0)) &&
             is_aligned<1>(operand<const uint4>(a, 1))) {
    transpose_runs<uint4>(a, bytes / 16);
  } else {
    transpose_runs<Bits>(a, a.dims[3]);
  }
}

}  // namespace weir::device

WEIR_ANY_KERNEL(transpose, 256)
