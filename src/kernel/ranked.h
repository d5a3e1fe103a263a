// Floats as integers with the same order, plus an index that breaks ties: what arg_max and top_k compare.
#pragma once

#include "kernel/random.h"

#if !defined(__CUDACC__) && !defined(__HIPCC__)
#include <bit>
#endif

namespace weir {

// NaN is below everything; both zeros are equal.
WEIR_HOST_DEVICE inline unsigned rank_of(float value) {
  if (value != value) return 0;
  const float sum = value + 0.0f;  // -0 becomes 0
#if defined(__CUDACC__) || defined(__HIPCC__)
  const unsigned bits = __float_as_uint(sum);
#else
  const unsigned bits = std::bit_cast<unsigned>(sum);
#endif
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// The larger one has the larger value or, if they are equal, the lower index. Never 0.
WEIR_HOST_DEVICE inline unsigned long long ranked(float value, long long index) {
  return static_cast<unsigned long long>(rank_of(value)) << 32 | (0xffffffffu - static_cast<unsigned>(index));
}
WEIR_HOST_DEVICE inline int index_of(unsigned long long ranked) {
  return static_cast<int>(0xffffffffu - static_cast<unsigned>(ranked & 0xffffffffu));
}

}  // namespace weir
