// OpenCL body of increase. Unsigned, because integers may wrap.
WEIR_KERNEL(increase) {
  __global const uint* const in = WEIR_OPERAND(const uint, 0);
  __global uint* const out = WEIR_OPERAND(uint, 1);
  const uint delta = (uint)a.dims[1];
  for (long i = global_thread(); i < a.dims[0]; i += global_threads()) out[i] = in[i] + delta;
}
