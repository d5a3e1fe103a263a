// OpenCL body of layer_norm_grad. Work-items add in a fixed order, without atomics: sums are reproducible bit for bit.
#define COLUMNS 16  // adjacent columns: they fill whole memory sectors in every type

WEIR_KERNEL(layer_norm_grad) {
  __local float by_gammas[WEIR_MOST_THREADS], by_betas[WEIR_MOST_THREADS];
  const long rows = a.dims[0], columns = a.dims[1];
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global const weir_element* const dy = WEIR_OPERAND(const weir_element, 1);
  __global const float* const stats = WEIR_OPERAND(const float, 2);
  const int thread = local_thread(), lane = thread % COLUMNS, down = thread / COLUMNS;
  const int down_lanes = local_threads() / COLUMNS;
  for (long first = group() * COLUMNS; first < columns; first += groups() * COLUMNS) {
    const long column = first + lane;
    running_sum by_gamma = empty_sum(), by_beta = empty_sum();
    if (column < columns) {
      for (long row = down; row < rows; row += down_lanes) {
        const float gradient = load(dy, row * columns + column);
        const float normal = (load(in, row * columns + column) - stats[2 * row]) * stats[2 * row + 1];
        add_to(&by_gamma, gradient * normal);
        add_to(&by_beta, gradient);
      }
    }
    by_gammas[thread] = value_of(&by_gamma);
    by_betas[thread] = value_of(&by_beta);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (down < 2 && column < columns) {
      running_sum total = empty_sum();
      for (int i = 0; i < down_lanes; ++i)
        add_to(&total, down == 0 ? by_gammas[i * COLUMNS + lane] : by_betas[i * COLUMNS + lane]);
      store(down == 0 ? WEIR_OPERAND(weir_element, 3) : WEIR_OPERAND(weir_element, 4), column, value_of(&total));
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // before the partial sums are written again
  }
}
