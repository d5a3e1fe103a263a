// OpenCL body of clip: one work-group, additions in a fixed order.
// As in clip.cpp: {sums, decay, warm-up steps, total steps} and {limit, rate, least rate}.
static float rate_after(float done, const weir_arguments* a) {
  const float warmup = (float)a->dims[2], total = (float)a->dims[3], rate = a->scalars[1], least = a->scalars[2];
  if (done < warmup) return rate * ((done + 1.0f) / warmup);
  if (a->dims[1] == 0) return rate;
  const float progress = fmin(1.0f, (done - warmup) / fmax(1.0f, total - warmup));
  const float left = a->dims[1] == 2 ? 0.5f + 0.5f * cos(3.14159265f * progress) : 1.0f - progress;
  return least + (rate - least) * left;
}

WEIR_KERNEL(clip) {
  __local float room[WEIR_MOST_THREADS];
  __global const float* const squares = WEIR_OPERAND(const float, 0);
  running_sum sum = empty_sum();
  for (long i = local_thread(); i < a.dims[0]; i += local_threads()) add_to(&sum, squares[i]);
  const float norm = sqrt(sum_of_group(value_of(&sum), room));
  if (group() == 0 && local_thread() == 0) {
    __global float* const state = WEIR_OPERAND(float, 1);
    const float limit = a.scalars[0];
    state[2] = rate_after(state[0], &a);
    state[0] += 1.0f;
    state[1] = limit > 0.0f ? fmin(1.0f, limit / (norm + 1e-6f)) : 1.0f;
  }
}
