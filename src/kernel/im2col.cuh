// Device body of im2col: threads along a patch.
#pragma once

#include "kernel/device_loops.cuh"
#include "kernel/im2col.h"

namespace weir::device {

template <class T>
__device__ inline void im2col(const KernelArguments& a) {
  const ImagePatch patch(a.dims[3]);
  const int height = static_cast<int>(a.dims[1]), width = static_cast<int>(a.dims[2]);
  const int side = static_cast<int>(patch.kernel), stride = static_cast<int>(patch.stride);
  const int padding = static_cast<int>(patch.padding), channels = static_cast<int>(patch.channels);
  const int across = static_cast<int>(patch.along(width)), down = static_cast<int>(patch.along(height));
  // A pixel is moved in runs of its channels, so that each run is either inside or outside of an image.
  const bool is_divided = channels % (16 / static_cast<int>(sizeof(T))) == 0;
  const auto move = [=](auto from, auto to, long long row, long long run, long long runs) {
    const int per_pixel = static_cast<int>(runs) / (side * side);
    const int pixel = static_cast<int>(run) / per_pixel, piece = static_cast<int>(run) % per_pixel;
    const long long line = row / across;
    const int x = static_cast<int>(row % across) * stride - padding + pixel % side;
    const int y = static_cast<int>(line % down) * stride - padding + pixel / side;
    auto& result = to[row * runs + run];
    if (x >= 0 && x < width && y >= 0 && y < height) {
      result = from[((line / down * height + y) * width + x) * per_pixel + piece];
    } else {
      for (T& element : result.elements) store(&element, 0.0f);
    }
  };
  const T* const in = operand<const T>(a, 0);
  T* const out = operand<T>(a, 1);
  const long long rows = a.dims[0] * across * down;
  if (is_divided) return map_row_runs(in, out, rows, patch.size(), move);
  map_rows(rows, patch.size(),
           [=](long long row, long long run) { move(&run_at<1>(in, 0), &run_at<1>(out, 0), row, run, patch.size()); });
}

}  // namespace weir::device

WEIR_FLOAT_KERNEL(im2col, 256)
