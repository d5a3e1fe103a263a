// OpenCL body of reduce. Work-items add in a fixed order, without atomics, so sums are reproducible bit for bit.
#define LANES 32

// 32 adjacent columns; the group's other work-items are further down each.
WEIR_INLINE void sum_columns(__global const weir_element* in, __global weir_element* out, long rows, long columns,
                             __local float* room) {
  const int lane = local_thread() % LANES, down = local_thread() / LANES, down_lanes = local_threads() / LANES;
  for (long first = group() * LANES; first < columns; first += groups() * LANES) {
    const long column = first + lane;
    running_sum sum = empty_sum();
    if (column < columns)
      for (long row = down; row < rows; row += down_lanes) add_to(&sum, load(in, row * columns + column));
    room[local_thread()] = value_of(&sum);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (down == 0 && column < columns) {
      running_sum total = empty_sum();
      for (int i = 0; i < down_lanes; ++i) add_to(&total, room[i * LANES + lane]);
      store(out, column, value_of(&total));
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // before the partial sums are written again
  }
}

// 32 work-items per row.
WEIR_INLINE void sum_short_rows(__global const weir_element* in, __global weir_element* out, long rows, long columns,
                                __local float* room) {
  const int thread = local_thread(), lane = thread % LANES, per_group = local_threads() / LANES;
  for (long first = group() * per_group; first < rows; first += groups() * per_group) {
    const long row = first + thread / LANES;
    running_sum sum = empty_sum();
    if (row < rows)
      for (long c = lane; c < columns; c += LANES) add_to(&sum, load(in, row * columns + c));
    room[thread] = value_of(&sum);
    for (int half_of = LANES / 2; half_of > 0; half_of /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (lane < half_of) room[thread] = room[thread] + room[thread + half_of];
    }
    if (lane == 0 && row < rows) store(out, row, room[thread]);
    barrier(CLK_LOCAL_MEM_FENCE);  // as above
  }
}

WEIR_INLINE void sum_long_rows(__global const weir_element* in, __global weir_element* out, long rows, long columns,
                               __local float* room) {
  for (long row = group(); row < rows; row += groups()) {
    running_sum sum = empty_sum();
    for (long c = local_thread(); c < columns; c += local_threads()) add_to(&sum, load(in, row * columns + c));
    const float total = sum_of_group(value_of(&sum), room);
    if (local_thread() == 0) store(out, row, total);
  }
}

WEIR_KERNEL(reduce) {
  __local float room[WEIR_MOST_THREADS];
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 1);
  const long rows = a.dims[0], columns = a.dims[1];
  if (a.dims[2] != 1) {
    sum_columns(in, out, rows, columns, room);
  } else if (columns <= 128) {
    sum_short_rows(in, out, rows, columns, room);
  } else {
    sum_long_rows(in, out, rows, columns, room);
  }
}
