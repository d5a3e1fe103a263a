// OpenCL body of layer_norm: a work-group per row, three passes over it (the second and third come from cache).
WEIR_KERNEL(layer_norm) {
  __local float room[WEIR_MOST_THREADS];
  const long columns = a.dims[1];
  const float width = (float)columns;
  const int thread = local_thread(), threads = local_threads();
  __global const weir_element* const gamma = WEIR_OPERAND(const weir_element, 1);
  __global const weir_element* const beta = WEIR_OPERAND(const weir_element, 2);
  for (long row = group(); row < a.dims[0]; row += groups()) {
    __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0) + row * columns;
    __global weir_element* const out = WEIR_OPERAND(weir_element, 3) + row * columns;
    // Shifted by the row's first value, as on the CPU, to keep the digits of a row far from zero.
    const float shift = load(in, 0);
    running_sum sum = empty_sum(), squares = empty_sum();
    for (long c = thread; c < columns; c += threads) add_to(&sum, load(in, c) - shift);
    const float mean = sum_of_group(value_of(&sum), room) / width;
    for (long c = thread; c < columns; c += threads) {
      const float distance = load(in, c) - shift - mean;
      add_to(&squares, distance * distance);
    }
    const float scale = 1.0f / sqrt(sum_of_group(value_of(&squares), room) / width + a.scalars[0]);
    for (long c = thread; c < columns; c += threads)
      store(out, c, (load(in, c) - shift - mean) * scale * load(gamma, c) + load(beta, c));
  }
}
