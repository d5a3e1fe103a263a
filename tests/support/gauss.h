// Random numbers of a normal distribution with mean 0 and standard deviation 1.
#pragma once

#include <cmath>

#include "measure/bootstrap.h"

namespace weir {

inline double gauss(SplitMix& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.fraction()));
  return radius * std::cos(6.283185307179586 * random.fraction());
}

}  // namespace weir
