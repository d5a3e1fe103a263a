// OpenCL body of stamp.
WEIR_KERNEL(stamp) {
  if (local_thread() != 0) return;
  for (long block = group(); block < a.dims[1]; block += groups()) {
    const long started_ns = (long)weir_time_ns();
    long ended_ns = started_ns;
    while ((ended_ns = (long)weir_time_ns()) - started_ns < a.dims[0]) {
    }
    write_ended(WEIR_OPERAND(volatile long, 0) + 2 * block, started_ns, ended_ns);
  }
}
