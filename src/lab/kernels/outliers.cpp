#include "lab/kernels/outliers.h"

#include <algorithm>
#include <vector>

#include "base/named_values.h"
#include "lab/kernels/batch.h"
#include "measure/statistics.h"

namespace weir::bench {

std::optional<Outliers> classify_outliers(std::span<const double> samples) {
  if (samples.size() < kMinForInterval) return std::nullopt;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double low = quantile_sorted(sorted, 0.25), high = quantile_sorted(sorted, 0.75);
  const double range = std::max(high - low, kResolution * quantile_sorted(sorted, 0.5));
  Outliers outliers;
  for (const double sample : sorted) {
    if (sample < low - 3 * range) {
      ++outliers.low_severe;
    } else if (sample < low - 1.5 * range) {
      ++outliers.low_mild;
    } else if (sample > high + 3 * range) {
      ++outliers.high_severe;
    } else if (sample > high + 1.5 * range) {
      ++outliers.high_mild;
    }
  }
  return outliers;
}

Json outliers_block(const std::optional<Outliers>& outliers) {
  if (!outliers) return nullptr;
  return WEIR_NAMED(outliers->low_severe, outliers->low_mild, outliers->high_mild, outliers->high_severe);
}

}  // namespace weir::bench
