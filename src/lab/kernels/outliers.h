// Classifies outliers by Tukey's fences. They are counted and never removed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/json.h"

namespace weir::bench {

// Mild: more than 1.5 interquartile ranges outside the quartiles; severe: more than 3. The range is at least the
// resolution of clocks (lab/kernels/batch.h): if most samples are equal, one step of the clock is no outlier.
struct Outliers {
  std::size_t low_severe = 0, low_mild = 0, high_mild = 0, high_severe = 0;
  std::size_t count() const { return low_severe + low_mild + high_mild + high_severe; }
};
// Nothing for fewer than 5 samples: their quartiles mean little.
std::optional<Outliers> classify_outliers(std::span<const double> samples);

// {"low_severe", "low_mild", "high_mild", "high_severe"}; null without outliers.
Json outliers_block(const std::optional<Outliers>& outliers);

}  // namespace weir::bench
