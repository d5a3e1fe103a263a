// OpenCL body of batch_norm: work-items along a row, each with the scale of its own column.
WEIR_KERNEL(batch_norm) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global const weir_element* const mean = WEIR_OPERAND(const weir_element, 1);
  __global const weir_element* const variance = WEIR_OPERAND(const weir_element, 2);
  __global const weir_element* const gamma = WEIR_OPERAND(const weir_element, 3);
  __global const weir_element* const beta = WEIR_OPERAND(const weir_element, 4);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 5);
  const long columns = a.dims[1];
  WEIR_FOR_ROWS(row, a.dims[0], c, columns) {
    const float scale = load(gamma, c) / sqrt(load(variance, c) + a.scalars[0]);
    store(out, row * columns + c, (load(in, row * columns + c) - load(mean, c)) * scale + load(beta, c));
  }
}
