// OpenCL body of copy: moves bits, 16 bytes at a time if the pointers allow it.
WEIR_KERNEL(copy) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 1);
  const long count = a.dims[0], per_run = 16 / (long)sizeof(weir_element);
  const bool is_wide = count > global_threads() && ((ulong)in | (ulong)out) % 16 == 0;
  const long runs = is_wide ? count / per_run : 0;
  for (long i = global_thread(); i < runs; i += global_threads())
    ((__global uint4*)out)[i] = ((__global const uint4*)in)[i];
  for (long i = runs * per_run + global_thread(); i < count; i += global_threads()) out[i] = in[i];
}
