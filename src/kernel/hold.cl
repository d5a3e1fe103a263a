// OpenCL body of hold.
WEIR_KERNEL(hold) {
  if (local_thread() != 0 || group() != 0) return;
  __global const volatile int* const flag = WEIR_OPERAND(const volatile int, 0);
  __global volatile long* const at = WEIR_OPERAND(volatile long, 1);
  const long started_ns = (long)weir_time_ns();
  at[0] = started_ns;
  order_for_host();
  while (*flag == 0 && (long)weir_time_ns() - started_ns < a.dims[0]) {
  }
  write_ended(at, started_ns, (long)weir_time_ns());
}
