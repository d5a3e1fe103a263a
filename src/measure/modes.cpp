#include "measure/modes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/statistics.h"

namespace weir {
namespace {

// The sum of distances from the median of values[begin, end), which are sorted; `sums[i]` is the sum of the first i.
double scatter(std::span<const double> values, std::span<const double> sums, std::size_t begin, std::size_t end) {
  const std::size_t middle = begin + (end - begin) / 2;
  const double below = values[middle] * static_cast<double>(middle - begin) - (sums[middle] - sums[begin]);
  const double above = sums[end] - sums[middle] - values[middle] * static_cast<double>(end - middle);
  return below + above;
}

// The border for which two medians leave the least distance to the samples. Medians: an outlier must not move it.
std::size_t best_border(std::span<const double> values, std::size_t fewest) {
  std::vector<double> sums(values.size() + 1, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i + 1] = sums[i] + values[i];
  std::size_t best = fewest;
  double least = INFINITY;
  for (std::size_t border = fewest; border + fewest <= values.size(); ++border) {
    const double all = scatter(values, sums, 0, border) + scatter(values, sums, border, values.size());
    if (all < least) {
      least = all;
      best = border;
    }
  }
  return best;
}

// A standard deviation that a few outliers do not move.
double robust_deviation(std::span<const double> values, double centre) {
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::fabs(value - centre));
  return 1.4826 * median(distances);
}

}  // namespace

std::optional<Modes> two_modes(std::span<const double> samples, double min_ratio) {
  if (samples.size() < kMinForModes) return std::nullopt;
  // Logarithms, because modes differ by a factor.
  std::vector<double> values;
  for (const double sample : samples) {
    if (!(sample > 0) || !std::isfinite(sample)) return std::nullopt;
    values.push_back(std::log(sample));
  }
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const auto fewest = static_cast<std::size_t>(std::ceil(kMinModeShare * count));

  const std::span<const double> all(values);
  std::size_t border = best_border(all, fewest);
  double low = median(all.first(border)), high = median(all.subspan(border));
  // A border at its limit may cut into one mode; this moves values to the nearer mode.
  border = static_cast<std::size_t>(std::lower_bound(values.begin(), values.end(), (low + high) / 2) - values.begin());
  if (border < fewest || values.size() - border < fewest) return std::nullopt;
  low = median(all.first(border));
  high = median(all.subspan(border));

  const double distance = high - low;
  if (distance < std::log(min_ratio)) return std::nullopt;
  const double within =
      std::hypot(robust_deviation(all.first(border), low), robust_deviation(all.subspan(border), high));
  if (distance * std::sqrt(2.0) < kMinModeDistance * within) return std::nullopt;
  const auto between = std::count_if(values.begin(), values.end(), [&](double value) {
    return value > low + distance / 3 && value < high - distance / 3;
  });
  if (static_cast<double>(between) > kMaxBetweenModes * count) return std::nullopt;

  const double share = static_cast<double>(border) / count;
  return Modes{{std::exp(low), share}, {std::exp(high), 1 - share}};
}

}  // namespace weir
