// How many commands ran at once. Reads timelines only.
#pragma once

#include <optional>

#include "measure/timeline.h"

namespace weir {

struct Concurrency {
  double mean = 0;  // commands running, averaged over the time in which at least one ran
  int max = 0;
  double busy_ns = 0;  // that time
};

// Nothing where no span has both a start and an end.
std::optional<Concurrency> concurrency(const Timeline& timeline);

}  // namespace weir
