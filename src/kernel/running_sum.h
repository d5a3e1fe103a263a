// A float sum whose error does not grow with its length. Shared by CPU bodies and device code; needs a compiler that
// keeps the order of float operations (no -ffast-math).
#pragma once

#include "kernel/random.h"

namespace weir {

// Kahan sum: about two roundings in total instead of one per term.
struct RunningSum {
  float sum = 0;
  float lost = 0;

  WEIR_HOST_DEVICE void add(float value) {
    const float corrected = value - lost;
    const float next = sum + corrected;
    lost = (next - sum) - corrected;
    sum = next;
  }
  WEIR_HOST_DEVICE float value() const { return sum - lost; }
};

}  // namespace weir
