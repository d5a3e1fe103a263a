// OpenCL body of ragged_gemm: a work-group per 64 x 128 of C (src/kernel/ragged_gemm.h), 4 x 8 sums per work-item, 16
// of K at a time in local memory. Tiles beyond an expert's rows have depth 0.
#define ROWS 64
#define COLUMNS 128
#define DEPTH 16
#define STRIDE_A (ROWS + 4)
#define THREADS 256

static float ragged_result(float sum, bool has_gelu) {
  return has_gelu ? 0.5f * sum * erfc(-sum * 0.70710678f) : sum;  // 1 / sqrt(2), as in gelu
}

__attribute__((reqd_work_group_size(THREADS, 1, 1))) WEIR_KERNEL(ragged_gemm) {
  __local float left[DEPTH * STRIDE_A], right[DEPTH * COLUMNS];
  const long capacity = a.dims[0], n = a.dims[1], k = a.dims[2], expert = a.dims[3] & 0xffffff;
  const bool is_grouped = (a.dims[3] >> 48 & 1) != 0, has_gelu = (a.dims[3] >> 49 & 1) != 0;
  __global const int* const offsets = WEIR_OPERAND(const int, 2) + expert;
  const long own = (long)offsets[1] - offsets[0];
  const long rows_of_a = is_grouped ? (long)a.scalars[1] : capacity;
  const long begin = is_grouped ? clamp((long)offsets[0], 0l, rows_of_a) : 0;
  const long rows = max(0l, min(min(capacity, own), rows_of_a - begin));
  __global const weir_element* const from_a = WEIR_OPERAND(const weir_element, 0) + begin * k;
  __global const weir_element* const from_b = WEIR_OPERAND(const weir_element, 1);
  __global weir_element* const c = WEIR_OPERAND(weir_element, 3);
  // Adjacent work-groups share columns of B, which is the larger operand.
  const long down = (capacity + ROWS - 1) / ROWS, across = (n + COLUMNS - 1) / COLUMNS;
  const int thread = local_thread(), row = thread / 16 * 4, column = thread % 16;
  for (long tile = group(); tile < down * across; tile += groups()) {
    const long first_row = tile % down * ROWS, first_column = tile / down * COLUMNS;
    const long max_depth = first_row < rows ? k : 0;
    float sums[4][8];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 8; ++j) sums[i][j] = 0.0f;
    for (long depth = 0; depth < max_depth; depth += DEPTH) {
      for (int e = thread; e < ROWS * DEPTH; e += THREADS) {
        const int r = e / DEPTH, d = e % DEPTH;
        const bool is_inside = first_row + r < rows && depth + d < k;
        left[d * STRIDE_A + r] = is_inside ? load(from_a, (first_row + r) * k + depth + d) : 0.0f;
      }
      for (int e = thread; e < COLUMNS * DEPTH; e += THREADS) {
        const int d = e / COLUMNS, i = e % COLUMNS;
        const bool is_inside = first_column + i < n && depth + d < k;
        right[d * COLUMNS + i] = is_inside ? load(from_b, (depth + d) * n + first_column + i) : 0.0f;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int d = 0; d < DEPTH; ++d) {
        float x[4], y[8];
        for (int i = 0; i < 4; ++i) x[i] = left[d * STRIDE_A + row + i];
        for (int j = 0; j < 8; ++j) y[j] = right[d * COLUMNS + column + 16 * j];
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 8; ++j) sums[i][j] = multiply_add(x[i], y[j], sums[i][j]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);  // before the next tiles are written
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 8; ++j) {
        const long to_row = first_row + row + i, to_column = first_column + column + 16 * j;
        if (to_row < rows && to_column < n) store(c, to_row * n + to_column, ragged_result(sums[i][j], has_gelu));
      }
    }
  }
}
