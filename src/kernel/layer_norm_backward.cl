// OpenCL body of layer_norm_backward: a work-group per row, three passes over it (the second and third come from
// cache).
WEIR_KERNEL(layer_norm_backward) {
  __local float room[WEIR_MOST_THREADS];
  const long columns = a.dims[1];
  const float width = (float)columns;
  const int thread = local_thread(), threads = local_threads();
  __global const weir_element* const gamma = WEIR_OPERAND(const weir_element, 1);
  __global float* const stats = WEIR_OPERAND(float, 4);
  for (long row = group(); row < a.dims[0]; row += groups()) {
    __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0) + row * columns;
    __global const weir_element* const dy = WEIR_OPERAND(const weir_element, 2) + row * columns;
    __global weir_element* const out = WEIR_OPERAND(weir_element, 3) + row * columns;
    // Shifted by the row's first value, as on the CPU, to keep the digits of a row far from zero.
    const float shift = load(in, 0);
    running_sum sum = empty_sum();
    for (long c = thread; c < columns; c += threads) add_to(&sum, load(in, c) - shift);
    const float mean = sum_of_group(value_of(&sum), room) / width;
    running_sum squares = empty_sum(), scaled = empty_sum(), product = empty_sum();
    for (long c = thread; c < columns; c += threads) {
      const float distance = load(in, c) - shift - mean, by_normal = load(dy, c) * load(gamma, c);
      add_to(&squares, distance * distance);
      add_to(&scaled, by_normal);
      add_to(&product, by_normal * distance);
    }
    const float inverse = 1.0f / sqrt(sum_of_group(value_of(&squares), room) / width + a.scalars[0]);
    const float by_mean = sum_of_group(value_of(&scaled), room) / width;
    const float by_deviation = sum_of_group(value_of(&product), room) / width * inverse;
    for (long c = thread; c < columns; c += threads) {
      const float by_normal = load(dy, c) * load(gamma, c);
      store(out, c, (by_normal - by_mean - (load(in, c) - shift - mean) * inverse * by_deviation) * inverse);
    }
    if (thread == 0) {
      stats[2 * row] = shift + mean;
      stats[2 * row + 1] = inverse;
    }
  }
}
