// OpenCL body of weighted_bce: one work-group, because there is one sum over one batch of scores.
WEIR_KERNEL(weighted_bce) {
  __local float room[WEIR_MOST_THREADS];
  __global const weir_element* const scores = WEIR_OPERAND(const weir_element, 0);
  __global const float* const targets = WEIR_OPERAND(const float, 1);
  __global const float* const weights = WEIR_OPERAND(const float, 2);
  __global weir_element* const gradient = WEIR_OPERAND(weir_element, 3);
  const float scale = a.scalars[0];
  running_sum sum = empty_sum();
  for (long i = local_thread(); i < a.dims[0]; i += local_threads()) {
    const float score = load(scores, i), target = targets[i], weight = weights[i];
    const float tail = exp(-fabs(score)), less = tail / (1.0f + tail), more = 1.0f / (1.0f + tail);
    const float positive = score > 0.0f ? more : less, negative = score > 0.0f ? less : more;
    store(gradient, i, scale * weight * ((1.0f - target) * positive - target * negative));
    add_to(&sum, weight * ((score > 0.0f ? (1.0f - target) * score : -target * score) + log1p(tail)));
  }
  const float total = sum_of_group(value_of(&sum), room);
  if (group() == 0 && local_thread() == 0) WEIR_OPERAND(float, 4)[0] = scale * total;
}
