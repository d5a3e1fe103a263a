// OpenCL body of softmax_backward: a work-group per row, two passes over it (the second comes from cache).
WEIR_KERNEL(softmax_backward) {
  __local float room[WEIR_MOST_THREADS];
  const long columns = a.dims[1];
  const int thread = local_thread(), threads = local_threads();
  for (long row = group(); row < a.dims[0]; row += groups()) {
    __global const weir_element* const p = WEIR_OPERAND(const weir_element, 0) + row * columns;
    __global const weir_element* const dp = WEIR_OPERAND(const weir_element, 1) + row * columns;
    __global weir_element* const out = WEIR_OPERAND(weir_element, 2) + row * columns;
    running_sum sum = empty_sum();
    for (long c = thread; c < columns; c += threads) add_to(&sum, load(p, c) * load(dp, c));
    const float mean = sum_of_group(value_of(&sum), room);
    for (long c = thread; c < columns; c += threads) store(out, c, load(p, c) * (load(dp, c) - mean));
  }
}
