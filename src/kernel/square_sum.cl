// OpenCL body of square_sum: a work-group per part, additions in a fixed order.
WEIR_KERNEL(square_sum) {
  __local float room[WEIR_MOST_THREADS];
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global float* const out = WEIR_OPERAND(float, 1);
  const long count = a.dims[0], parts = a.dims[1], size = ((count + parts - 1) / parts + 7) / 8 * 8;
  for (long part = group(); part < parts; part += groups()) {
    const long begin = WEIR_LEAST(count, part * size), end = WEIR_LEAST(count, begin + size);
    running_sum sum = empty_sum();
    for (long i = begin + local_thread(); i < end; i += local_threads()) {
      const float x = load(in, i);
      add_to(&sum, x * x);
    }
    const float total = sum_of_group(value_of(&sum), room);
    if (local_thread() == 0) out[part] = total;
  }
}
