// OpenCL body of the element-wise chain. Operations are numbered as in src/kernel/chain.h; comparisons preserve NaN, as
// in the CPU body.
WEIR_KERNEL(chain) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 1);
  const uint ops = (uint)a.dims[1];
  for (long i = global_thread(); i < a.dims[0]; i += global_threads()) {
    float x = load(in, i);
    float s0 = a.scalars[0], s1 = a.scalars[1], s2 = a.scalars[2], s3 = a.scalars[3];
    for (uint rest = ops; rest != 0; rest >>= 8) {
      switch (rest & 0xffu) {
        case 1:  // mul
          x = x * s0;
          s0 = s1, s1 = s2, s2 = s3;
          break;
        case 2:  // add
          x = x + s0;
          s0 = s1, s1 = s2, s2 = s3;
          break;
        case 3:  // abs
          x = fabs(x);
          break;
        case 4:  // clamp
          x = x < s0 ? s0 : x > s1 ? s1 : x;
          s0 = s2, s1 = s3;
          break;
        case 5:  // relu
          x = x < 0.0f ? 0.0f : x;
          break;
        case 6:  // square
          x = x * x;
          break;
      }
    }
    store(out, i, x);
  }
}
