// OpenCL body of cache_write.
WEIR_KERNEL(cache_write) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global const int* const slots = WEIR_OPERAND(const int, 1);
  __global const int* const lengths = WEIR_OPERAND(const int, 2);
  __global weir_element* const cache = WEIR_OPERAND(weir_element, 3);
  const long queries = a.dims[1], positions = a.dims[2], width = a.dims[3], slots_total = (long)a.scalars[0];
  WEIR_FOR_ROWS(row, a.dims[0] * queries, column, width) {
    const long sequence = row / queries, slot = slots[sequence];
    const long position = lengths[sequence] - queries + row % queries;
    if (slot < 0 || slot >= slots_total || position < 0 || position >= positions) continue;
    cache[(slot * positions + position) * width + column] = in[row * width + column];
  }
}
