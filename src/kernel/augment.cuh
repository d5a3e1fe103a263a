// Device body of augment: threads along a line of an image.
#pragma once

#include "kernel/device_loops.cuh"

namespace weir::device {

template <class T>
__device__ inline void augment(const KernelArguments& a) {
  const T* const in = operand<const T>(a, 0);
  const int* const flips = operand<const int>(a, 1);
  T* const out = operand<T>(a, 2);
  const long long height = a.dims[1];
  const int width = static_cast<int>(a.dims[2]), channels = static_cast<int>(a.dims[3]);
  const float mean = a.scalars[0], scale = a.scalars[1];
  map_rows(a.dims[0] * height, static_cast<long long>(width) * channels, [=](long long row, long long column) {
    const int x = static_cast<int>(column) / channels, channel = static_cast<int>(column) % channels;
    const int from = (flips[row / height] & 1) != 0 ? width - 1 - x : x;
    const long long line = row * width * channels;
    store(out + line + column, (load(in + line + from * channels + channel) - mean) * scale);
  });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(augment, 256)
