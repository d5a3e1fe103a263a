// OpenCL body of fill.
WEIR_KERNEL(fill) {
  __global weir_element* const out = WEIR_OPERAND(weir_element, 0);
  const bool is_random = a.dims[1] != 0;
  for (long i = global_thread(); i < a.dims[0]; i += global_threads()) {
    float value = a.scalars[0];
    if (is_random) {
      const float unit =
          (float)(random_bits((ulong)a.dims[2], (ulong)(a.dims[3] + i)) >> 8) * (1.0f / 8388608.0f) - 1.0f;
      value = a.scalars[0] * unit + a.scalars[1];
    }
    store(out, i, value);
  }
}
