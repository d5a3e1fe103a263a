// OpenCL body of clip: one work-group, additions in a fixed order.
WEIR_KERNEL(clip) {
  __local float room[WEIR_MOST_THREADS];
  __global const float* const squares = WEIR_OPERAND(const float, 0);
  running_sum sum = empty_sum();
  for (long i = local_thread(); i < a.dims[0]; i += local_threads()) add_to(&sum, squares[i]);
  const float norm = sqrt(sum_of_group(value_of(&sum), room));
  if (group() == 0 && local_thread() == 0) {
    __global float* const state = WEIR_OPERAND(float, 1);
    const float limit = a.scalars[0];
    state[0] += 1.0f;
    state[1] = limit > 0.0f ? fmin(1.0f, limit / (norm + 1e-6f)) : 1.0f;
  }
}
