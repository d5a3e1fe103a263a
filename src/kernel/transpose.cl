// OpenCL body of transpose: single elements are exchanged through local memory, longer runs are copied whole.
#define SIDE 64

WEIR_INLINE void transpose_squares(__global const weir_element* in, __global weir_element* out, long batch, long rows,
                                   long columns, __local weir_element* square) {
  const long squares_down = (rows + SIDE - 1) / SIDE, squares_across = (columns + SIDE - 1) / SIDE;
  for (long block = group(); block < batch * squares_down * squares_across; block += groups()) {
    const long line = divide(block, squares_across), matrix = divide(line, squares_down);
    const long column = (block - line * squares_across) * SIDE, row = (line - matrix * squares_down) * SIDE;
    const long begin = matrix * rows * columns;
    for (int e = local_thread(); e < SIDE * SIDE; e += local_threads()) {
      const int r = e / SIDE, c = e % SIDE;
      if (row + r < rows && column + c < columns)
        square[r * (SIDE + 1) + c] = in[begin + (row + r) * columns + column + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = local_thread(); e < SIDE * SIDE; e += local_threads()) {
      const int c = e / SIDE, r = e % SIDE;
      if (row + r < rows && column + c < columns)
        out[begin + (column + c) * rows + row + r] = square[r * (SIDE + 1) + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // before the square is written again
  }
}

WEIR_KERNEL(transpose) {
  __local weir_element square[SIDE * (SIDE + 1)];  // a column is spread over all banks
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 1);
  const long batch = a.dims[0], rows = a.dims[1], columns = a.dims[2], width = a.dims[3];
  // One of the two loops is empty. There is no branch, because PoCL 3.1 cannot handle branches around barriers.
  transpose_squares(in, out, width == 1 ? batch : 0, rows, columns, square);
  // Writes are contiguous, reads start at each run.
  WEIR_FOR_ROWS(to, width == 1 ? 0 : batch * rows * columns, e, width) {
    const long above = divide(to, rows), matrix = divide(above, columns);
    const long row = to - above * rows, column = above - matrix * columns;
    out[to * width + e] = in[((matrix * rows + row) * columns + column) * width + e];
  }
}
