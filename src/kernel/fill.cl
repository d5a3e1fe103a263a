// OpenCL body of fill: the random values of src/kernel/random.h, bit for bit.
static uint random_bits(ulong seed, ulong index) {
  ulong z = seed * 0x9E3779B97F4A7C15ul + index;
  z = (z ^ (z >> 33)) * 0xff51afd7ed558ccdul;
  z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53ul;
  z ^= z >> 33;
  return (uint)(z >> 16);
}

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
