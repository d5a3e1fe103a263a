// OpenCL body of gelu_backward.
WEIR_KERNEL(gelu_backward) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global const weir_element* const gradients = WEIR_OPERAND(const weir_element, 1);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 2);
  for (long i = global_thread(); i < a.dims[0]; i += global_threads()) {
    const float x = load(in, i);
    // 1 / sqrt(2) and 1 / sqrt(2 pi)
    const float slope = 0.5f * erfc(-x * 0.70710678f) + x * 0.398942280f * exp(-0.5f * x * x);
    store(out, i, load(gradients, i) * slope);
  }
}
