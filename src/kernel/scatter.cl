// OpenCL body of scatter.
WEIR_KERNEL(scatter) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global const int* const index = WEIR_OPERAND(const int, 1);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 2);
  const long width = a.dims[1], out_rows = a.dims[2];
  WEIR_FOR_ROWS(row, a.dims[0], column, width) {
    const long to = index[row];
    if (0 <= to && to < out_rows) out[to * width + column] = in[row * width + column];
  }
}
