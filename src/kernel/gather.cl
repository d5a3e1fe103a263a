// OpenCL body of gather.
WEIR_KERNEL(gather) {
  __global const weir_element* const table = WEIR_OPERAND(const weir_element, 0);
  __global const int* const index = WEIR_OPERAND(const int, 1);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 2);
  const long width = a.dims[1], table_rows = a.dims[2];
  WEIR_FOR_ROWS(row, a.dims[0], column, width) {
    const long from = index[row];
    // All bits 0 is zero in every type.
    out[row * width + column] = 0 <= from && from < table_rows ? table[from * width + column] : (weir_element)0;
  }
}
