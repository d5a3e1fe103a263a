// How im2col packs its patch into a dimension. Shared by workloads, the CPU body and device code.
#pragma once


#include "kernel/random.h"

namespace weir {

// dims[3]: channels of a pixel, side of the square patch, step between patches, zero padding around the image.
WEIR_HOST_DEVICE constexpr long long image_patch(long long channels, long long kernel, long long stride,
                                                    long long padding) {
  return channels | kernel << 32 | stride << 40 | padding << 48;
}

struct ImagePatch {
  WEIR_HOST_DEVICE explicit constexpr ImagePatch(long long packed)
      : channels(packed & 0xffffffff),
        kernel(packed >> 32 & 0xff),
        stride(packed >> 40 & 0xff),
        padding(packed >> 48 & 0xff) {}
  // The number of patches along a side of the image.
  WEIR_HOST_DEVICE constexpr long long along(long long side) const {
    return (side + 2 * padding - kernel) / stride + 1;
  }
  WEIR_HOST_DEVICE constexpr long long size() const { return kernel * kernel * channels; }

  long long channels, kernel, stride, padding;
};

}  // namespace weir
