// OpenCL body of softmax: a work-group per row, three passes over it (the second and third come from cache).
WEIR_KERNEL(softmax) {
  __local float room[WEIR_MOST_THREADS];
  const long columns = a.dims[1];
  const int thread = local_thread(), threads = local_threads();
  for (long row = group(); row < a.dims[0]; row += groups()) {
    __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0) + row * columns;
    __global weir_element* const out = WEIR_OPERAND(weir_element, 1) + row * columns;
    const long visible = a.dims[2] != 0 ? row - divide(row, columns) * columns + 1 : columns;
    float largest = -INFINITY;
    for (long c = thread; c < visible; c += threads) largest = fmax(largest, load(in, c));
    largest = largest_of_group(largest, room);
    running_sum sum = empty_sum();
    for (long c = thread; c < visible; c += threads) add_to(&sum, exp(load(in, c) - largest));
    const float total = sum_of_group(value_of(&sum), room);
    for (long c = thread; c < visible; c += threads) store(out, c, exp(load(in, c) - largest) / total);
    for (long c = visible + thread; c < columns; c += threads) store(out, c, 0.0f);
  }
}
