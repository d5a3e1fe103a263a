// OpenCL body of max_pool: work-items along the channels of a window, which is packed as in src/kernel/im2col.h.
WEIR_KERNEL(max_pool) {
  __global const weir_element* const in = WEIR_OPERAND(const weir_element, 0);
  __global weir_element* const out = WEIR_OPERAND(weir_element, 1);
  const int height = (int)a.dims[1], width = (int)a.dims[2];
  const long channels = a.dims[3] & 0xffffffff;
  const int side = (int)(a.dims[3] >> 32 & 0xff), stride = (int)(a.dims[3] >> 40 & 0xff);
  const int padding = (int)(a.dims[3] >> 48 & 0xff);
  const int across = (width + 2 * padding - side) / stride + 1, down = (height + 2 * padding - side) / stride + 1;
  WEIR_FOR_ROWS(row, a.dims[0] * across * down, channel, channels) {
    const long line = divide(row, across), image = divide(line, down);
    const int left = (int)(row - line * across) * stride - padding, top = (int)(line - image * down) * stride - padding;
    const int first_x = max(0, left), first_y = max(0, top);
    float best = load(in, ((image * height + first_y) * width + first_x) * channels + channel);
    for (int y = first_y; y < min(height, top + side); ++y)
      for (int x = first_x; x < min(width, left + side); ++x) {
        const float value = load(in, ((image * height + y) * width + x) * channels + channel);
        if (value > best) best = value;
      }
    store(out, row * channels + channel, best);
  }
}
