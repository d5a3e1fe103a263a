// OpenCL body of gemm: a work-group per 64 x 64 of C, 4 x 4 sums per work-item, 16 of K at a time in local memory. The
// launch is that of src/kernel/gemm_tiles.h; flags and batch are packed as in src/kernel/gemm.h.
#define TILE 64
#define DEPTH 16
#define STRIDE (TILE + 4)  // so that successive rows are in different banks

// Loads DEPTH x TILE of a matrix into local memory, zeros outside. Element (d, i) is at i * k + d, or at d * extent + i
// if the extent is contiguous; either way adjacent work-items read adjacent elements.
WEIR_INLINE void fetch(__local float* tile, __global const weir_element* from, bool is_side_by_side, long depth, long k,
                       long first, long extent) {
  for (int e = local_thread(); e < DEPTH * TILE; e += 256) {
    const int d = is_side_by_side ? e / TILE : e % DEPTH, i = is_side_by_side ? e % TILE : e / DEPTH;
    const bool is_inside = depth + d < k && first + i < extent;
    const long at = is_side_by_side ? (depth + d) * extent + first + i : (first + i) * k + depth + d;
    tile[d * STRIDE + i] = is_inside ? load(from, at) : 0.0f;
  }
}

__attribute__((reqd_work_group_size(256, 1, 1))) WEIR_KERNEL(gemm) {
  __local float left[DEPTH * STRIDE], right[DEPTH * STRIDE];
  const long m = a.dims[0], n = a.dims[1], k = a.dims[2];
  const long batch = (a.dims[3] >> 8) > 1 ? a.dims[3] >> 8 : 1;
  const bool transposes_a = (a.dims[3] & 1) != 0, transposes_b = (a.dims[3] & 2) != 0;
  const float alpha = a.scalars[0], beta = a.scalars[1];
  const long down = (m + TILE - 1) / TILE, across = (n + TILE - 1) / TILE;
  const int row = local_thread() / 16 * 4, column = local_thread() % 16;
  for (long tile = group(); tile < batch * down * across; tile += groups()) {
    const long line = divide(tile, across), product = divide(line, down);
    const long first_column = (tile - line * across) * TILE, first_row = (line - product * down) * TILE;
    __global const weir_element* const from_a = WEIR_OPERAND(const weir_element, 0) + product * m * k;
    __global const weir_element* const from_b = WEIR_OPERAND(const weir_element, 1) + product * k * n;
    __global weir_element* const c = WEIR_OPERAND(weir_element, 2) + product * m * n;
    float sums[4][4];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) sums[i][j] = 0.0f;
    for (long depth = 0; depth < k; depth += DEPTH) {
      fetch(left, from_a, transposes_a, depth, k, first_row, m);
      fetch(right, from_b, !transposes_b, depth, k, first_column, n);
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int d = 0; d < DEPTH; ++d) {
        float x[4], y[4];
        for (int i = 0; i < 4; ++i) x[i] = left[d * STRIDE + row + i];
        for (int j = 0; j < 4; ++j) y[j] = right[d * STRIDE + column + 16 * j];
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);  // before the next tiles are written
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const long to_row = first_row + row + i, to_column = first_column + column + 16 * j;
        if (to_row >= m || to_column >= n) continue;
        const long to = to_row * n + to_column;
        // If beta is 0, C may hold anything.
        store(c, to, beta != 0.0f ? alpha * sums[i][j] + beta * load(c, to) : alpha * sums[i][j]);
      }
    }
  }
}
