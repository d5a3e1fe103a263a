// OpenCL body of im2col: work-items along a patch, which is packed as in src/kernel/im2col.h.
WEIR_KERNEL(im2col) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 1);
  const int height = (int)a.dims[1], width = (int)a.dims[2], channels = (int)(a.dims[3] & 0xffffffff);
  const int side = (int)(a.dims[3] >> 32 & 0xff), stride = (int)(a.dims[3] >> 40 & 0xff);
  const int padding = (int)(a.dims[3] >> 48 & 0xff);
  const int across = (width + 2 * padding - side) / stride + 1, down = (height + 2 * padding - side) / stride + 1;
  const long size = (long)side * side * channels;
  WEIR_FOR_ROWS(row, a.dims[0] * across * down, column, size) {
    const int pixel = (int)column / channels, channel = (int)column % channels;
    const long line = divide(row, across), image = divide(line, down);
    const int x = (int)(row - line * across) * stride - padding + pixel % side;
    const int y = (int)(line - image * down) * stride - padding + pixel / side;
    const bool is_inside = x >= 0 && x < width && y >= 0 && y < height;
    // All bits 0 is zero in every type.
    out[row * size + column] =
        is_inside ? in[((image * height + y) * width + x) * channels + channel] : (weir_element)0;
  }
}
