// OpenCL body of add.
WEIR_KERNEL(add) {
  __global const weir_element* const x = WEIR_OPERAND(const weir_element, 0);
  __global const weir_element* const y = WEIR_OPERAND(const weir_element, 1);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 2);
  const long count = a.dims[0] * a.dims[1], period = a.dims[2] != 0 ? a.dims[1] : count;
  const float x_scale = a.scalars[0], y_scale = a.scalars[1];
  for (long i = global_thread(); i < count; i += global_threads()) {
    const long within = period == count ? i : i - divide(i, period) * period;
    store(out, i, x_scale * load(x, i) + y_scale * load(y, within));
  }
}
