// OpenCL body of dispatch: adjacent work-items along a token's row.
WEIR_KERNEL(dispatch) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global const int* const ids = WEIR_OPERAND(const int, 1);
  __global const int* const slots = WEIR_OPERAND(const int, 2);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 3);
  const long width = a.dims[1], picks = a.dims[2], capacity = a.dims[3], experts = (long)a.scalars[0];
  WEIR_FOR_ROWS(assignment, a.dims[0] * picks, column, width) {
    const long id = ids[assignment], slot = slots[assignment];
    if (id < 0 || id >= experts || slot < 0 || slot >= capacity) continue;
    out[(id * capacity + slot) * width + column] = in[assignment / picks * width + column];
  }
}
