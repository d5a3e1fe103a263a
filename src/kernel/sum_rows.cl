// OpenCL body of sum_rows. The order of additions is fixed, without atomics, so sums are reproducible bit for bit.
#define MANY_PARTS 32

// With many parts, 8 work-items share a column, so that few columns keep a device busy; with few parts, one adds them
// alone.
WEIR_KERNEL(sum_rows) {
  __local float room[WEIR_MOST_THREADS];
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 1);
  const long parts = a.dims[1], count = a.dims[2], stride = a.dims[3];
  const int thread = local_thread(), down_lanes = parts >= MANY_PARTS ? 8 : 1, lanes = local_threads() / down_lanes;
  const int lane = thread % lanes, down = thread / lanes;
  const long across = (count + lanes - 1) / lanes;
  for (long block = group(); block < a.dims[0] * across; block += groups()) {
    const long set = divide(block, across), column = (block - set * across) * lanes + lane;
    running_sum sum = empty_sum();
    if (column < count)
      for (long part = down; part < parts; part += down_lanes)
        add_to(&sum, load(in, (set * parts + part) * stride + column));
    room[thread] = value_of(&sum);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (down == 0 && column < count) {
      running_sum total = empty_sum();
      for (int i = 0; i < down_lanes; ++i) add_to(&total, room[i * lanes + lane]);
      store(out, set * count + column, a.scalars[0] * value_of(&total));
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // before the partial sums are written again
  }
}
