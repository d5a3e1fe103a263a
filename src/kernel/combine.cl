// OpenCL body of combine: work-items along the width of a token.
WEIR_KERNEL(combine) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global const int* const ids = WEIR_OPERAND(const int, 1);
  __global const int* const slots = WEIR_OPERAND(const int, 2);
  __global const weir_element* const weights = WEIR_OPERAND(const weir_element, 3);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 4);
  const long width = a.dims[1], picks = a.dims[2], capacity = a.dims[3], experts = (long)a.scalars[0];
  WEIR_FOR_ROWS(token, a.dims[0], column, width) {
    float sum = 0.0f;
    for (long pick = token * picks; pick < (token + 1) * picks; ++pick) {
      const long id = ids[pick], slot = slots[pick];
      if (id < 0 || id >= experts || slot < 0 || slot >= capacity) continue;
      sum += load(weights, pick) * load(in, (id * capacity + slot) * width + column);
    }
    store(out, token * width + column, sum);
  }
}
