// OpenCL body of arg_max: a work-group per row.
WEIR_KERNEL(arg_max) {
  __local ulong room[WEIR_MOST_THREADS];
  const long columns = a.dims[1];
  const int thread = local_thread();
  for (long row = group(); row < a.dims[0]; row += groups()) {
    __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0) + row * columns;
    ulong best = 0;
    for (long c = thread; c < columns; c += local_threads()) best = max(best, ranked(load(in, c), c));
    room[thread] = best;
    for (int half_of = local_threads() / 2; half_of > 0; half_of /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (thread < half_of) room[thread] = max(room[thread], room[thread + half_of]);
    }
    if (thread == 0) WEIR_OPERAND(int, 1)[row] = index_of(room[0]);
    barrier(CLK_LOCAL_MEM_FENCE);  // before the next row's values are written
  }
}
