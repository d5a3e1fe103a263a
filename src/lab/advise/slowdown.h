// How much longer a kernel takes beside others, learned from launches of one kind that ran beside few and beside many.
// Knows durations only.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::advise {

struct BesideOthers {
  double others = 0;  // that ran meanwhile, on average
  std::int64_t ns = 0;
};

// Factors by the number of others, 0, 1, 2 ...: the first is 1, and none is less than the one before. Empty where
// durations do not rise with the number of others, or all ran beside equally many.
std::vector<double> slowdown_of(std::vector<BesideOthers> launches);

}  // namespace weir::advise
