// OpenCL body of gelu.
WEIR_KERNEL(gelu) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 1);
  for (long i = global_thread(); i < a.dims[0]; i += global_threads()) {
    const float x = load(in, i);
    store(out, i, 0.5f * x * erfc(-x * 0.70710678f));  // 1 / sqrt(2)
  }
}
