// Device body of max_pool: threads along the channels of a window.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/im2col.h"

namespace weir::device {

template <class T>
__device__ inline void max_pool(const KernelArguments& a) {
  const ImagePatch patch(a.dims[3]);
  const int height = static_cast<int>(a.dims[1]), width = static_cast<int>(a.dims[2]);
  const int side = static_cast<int>(patch.kernel), stride = static_cast<int>(patch.stride);
  const int padding = static_cast<int>(patch.padding);
  const long long channels = patch.channels;
  const int across = static_cast<int>(patch.along(width)), down = static_cast<int>(patch.along(height));
  const T* const in = operand<const T>(a, 0);
  T* const out = operand<T>(a, 1);
  map_rows(a.dims[0] * across * down, channels, [=](long long row, long long channel) {
    const long long line = row / across;
    const int left = static_cast<int>(row % across) * stride - padding;
    const int top = static_cast<int>(line % down) * stride - padding;
    const int first_x = max(0, left), first_y = max(0, top);
    const T* const image = in + line / down * height * width * channels + channel;
    float best = load(image + (static_cast<long long>(first_y) * width + first_x) * channels);
    for (int y = first_y; y < min(height, top + side); ++y)
      for (int x = first_x; x < min(width, left + side); ++x) {
        const float value = load(image + (static_cast<long long>(y) * width + x) * channels);
        if (value > best) best = value;
      }
    store(out + row * channels + channel, best);
  });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(max_pool, 256)
