#include "lab/advise/slowdown.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace weir::advise {
namespace {

constexpr std::size_t kFewest = 3;  // launches, for a number of others to count
constexpr std::size_t kMostOthers = 127;
// Launches that differ in what they compute differ among equal neighbours, too: then there is no such trend.
constexpr double kTrend = 0.3;

// Places in the order, from 0; equal values share theirs.
template <class ValueOf>
std::vector<double> ranks(std::size_t count, ValueOf value_of) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return value_of(a) < value_of(b); });
  std::vector<double> found(count);
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i;
    while (end < count && value_of(order[end]) == value_of(order[i])) ++end;
    for (std::size_t k = i; k < end; ++k) found[order[k]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return found;
}

// Spearman's correlation.
double trend(const std::vector<BesideOthers>& launches) {
  const auto others = ranks(launches.size(), [&](std::size_t i) { return launches[i].others; });
  const auto durations = ranks(launches.size(), [&](std::size_t i) { return static_cast<double>(launches[i].ns); });
  const double mean = (static_cast<double>(launches.size()) - 1) / 2;
  double both = 0, first = 0, second = 0;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    both += (others[i] - mean) * (durations[i] - mean);
    first += (others[i] - mean) * (others[i] - mean);
    second += (durations[i] - mean) * (durations[i] - mean);
  }
  return first > 0 && second > 0 ? both / std::sqrt(first * second) : 0;
}

struct Level {
  double ns = 0, weight = 0;
  std::size_t bins = 0;
};

// More others never make it faster: neighbours that say so are taken together.
void add_level(std::vector<Level>& levels, Level level) {
  while (!levels.empty() && levels.back().ns >= level.ns) {
    const Level& before = levels.back();
    level.ns = (level.ns * level.weight + before.ns * before.weight) / (level.weight + before.weight);
    level.weight += before.weight;
    level.bins += before.bins;
    levels.pop_back();
  }
  levels.push_back(level);
}

}  // namespace

std::vector<double> slowdown_of(std::vector<BesideOthers> launches) {
  if (launches.size() < 2 * kFewest || trend(launches) < kTrend) return {};
  std::vector<std::vector<std::int64_t>> bins;
  for (const BesideOthers& launch : launches) {
    const auto others = std::min(kMostOthers, static_cast<std::size_t>(std::llround(std::max(0.0, launch.others))));
    if (bins.size() <= others) bins.resize(others + 1);
    bins[others].push_back(launch.ns);
  }
  std::vector<Level> levels;
  std::size_t empty =
      0;  // bins without launches since the last level: as with fewer others, or before the first as there
  for (std::vector<std::int64_t>& bin : bins) {
    if (bin.size() < kFewest) {
      ++empty;
      continue;
    }
    const std::size_t skipped = std::exchange(empty, 0);
    if (!levels.empty()) levels.back().bins += skipped;
    const auto middle = bin.begin() + static_cast<std::ptrdiff_t>(bin.size() / 2);
    std::nth_element(bin.begin(), middle, bin.end());
    add_level(levels,
              {static_cast<double>(*middle), static_cast<double>(bin.size()), levels.empty() ? 1 + skipped : 1});
  }
  if (levels.size() < 2) return {};
  std::vector<double> factors;
  for (const Level& level : levels) factors.insert(factors.end(), level.bins, level.ns / levels.front().ns);
  return factors;
}

}  // namespace weir::advise
