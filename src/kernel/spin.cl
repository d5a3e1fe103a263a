// OpenCL body of spin. Times are subtracted as integers: as floats they would lose microseconds.
WEIR_KERNEL(spin) {
  if (local_thread() != 0) return;
  const ulong duration_ns = (ulong)(a.dims[0] > 0 ? a.dims[0] : 0);
  for (long block = group(); block < a.dims[1]; block += groups()) {
    const ulong started_ns = weir_time_ns();
    while (weir_time_ns() - started_ns < duration_ns) {
    }
    WEIR_OPERAND(float, 0)[block] = 1.0f;
  }
}
