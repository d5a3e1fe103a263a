// OpenCL body of dropout.
WEIR_KERNEL(dropout) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 3);
  const ulong done = (ulong)(long)WEIR_OPERAND(const float, 1)[0];
  const ulong seed = done << 32 | (ulong)(uint)WEIR_OPERAND(const int, 2)[0];
  const uint least = (uint)(a.scalars[0] * 4294967296.0f);
  const long count = a.dims[0] * a.dims[1];
  for (long i = global_thread(); i < count; i += global_threads()) {
    const long row = divide(i, a.dims[1]);
    const ulong index = (ulong)(row * a.dims[2] + a.dims[3] + i - row * a.dims[1]);
    const bool is_kept = random_bits(seed, index) >= least;
    store(out, i, is_kept ? a.scalars[1] * load(in, i) : 0.0f);
  }
}
