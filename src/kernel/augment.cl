// OpenCL body of augment: work-items along a line of an image.
WEIR_KERNEL(augment) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global const int* const flips = WEIR_OPERAND(const int, 1);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 2);
  const long height = a.dims[1];
  const int width = (int)a.dims[2], channels = (int)a.dims[3];
  const float mean = a.scalars[0], scale = a.scalars[1];
  WEIR_FOR_ROWS(row, a.dims[0] * height, column, (long)width * channels) {
    const int x = (int)column / channels, channel = (int)column % channels;
    const int from = (flips[row / height] & 1) != 0 ? width - 1 - x : x;
    const long line = row * width * channels;
    store(out, line + column, (load(in, line + (long)from * channels + channel) - mean) * scale);
  }
}
