#include "trace/clock_curve.h"

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::size_t kMinForLines = 30;
constexpr std::size_t kPairsPerBlock = 5;
constexpr std::size_t kMaxBlocks = 64;
constexpr std::size_t kMaxKnots = 17;
// A block must be this many standard errors off before the curve bends.
constexpr double kClearlyOff = 4;
// Clocks that are corrected by their system change speed by 0.05 % at most. A steeper line is a clock that was set.
constexpr double kSteepest = 1e-3;

// Standard deviation of single values around a slowly changing middle, from differences of neighbours.
template <class Knot>
double noise_of(const std::vector<Knot>& pairs) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < pairs.size(); ++i) steps.push_back(pairs[i].distance_ns - pairs[i - 1].distance_ns);
  if (steps.empty()) return 0;
  const double trend = median(steps);
  for (double& step : steps) step = std::fabs(step - trend);
  return median(steps) / 0.954;  // of normal values: 0.6745 * sqrt(2)
}

// Least squares of joined lines whose knots have the times of some of the blocks: a tridiagonal system.
template <class Knot>
std::vector<Knot> joined_lines(const std::vector<Knot>& blocks, const std::vector<std::size_t>& at) {
  const std::size_t n = at.size();
  std::vector<double> diagonal(n, 0), beside(n, 0), right(n, 0);
  std::size_t line = 0;
  for (const Knot& block : blocks) {
    while (line + 2 < n && block.at_ns > blocks[at[line + 1]].at_ns) ++line;
    const double from = blocks[at[line]].at_ns, to = blocks[at[line + 1]].at_ns;
    const double later = (block.at_ns - from) / (to - from), earlier = 1 - later;
    diagonal[line] += earlier * earlier;
    diagonal[line + 1] += later * later;
    beside[line] += earlier * later;
    right[line] += earlier * block.distance_ns;
    right[line + 1] += later * block.distance_ns;
  }
  for (std::size_t i = 1; i < n; ++i) {
    const double factor = beside[i - 1] / diagonal[i - 1];
    diagonal[i] -= factor * beside[i - 1];
    right[i] -= factor * right[i - 1];
  }
  std::vector<Knot> knots(n);
  for (std::size_t i = n; i-- > 0;) {
    const double next = i + 1 < n ? beside[i] * knots[i + 1].distance_ns : 0;
    knots[i] = {blocks[at[i]].at_ns, (right[i] - next) / diagonal[i]};
  }
  return knots;
}

}  // namespace

ClockCurve::ClockCurve(std::vector<ClockPair> pairs) {
  if (pairs.empty()) return;
  std::sort(pairs.begin(), pairs.end(),
            [](const ClockPair& a, const ClockPair& b) { return a.theirs_ns < b.theirs_ns; });
  fit_.origin_ns = pairs.front().theirs_ns;
  fit_.base_ns = minus(pairs.front().theirs_ns, pairs.front().ours_ns);
  std::vector<Knot> found;
  std::vector<double> distances;
  for (const ClockPair& pair : pairs) {
    const std::int64_t distance = minus(minus(pair.theirs_ns, pair.ours_ns), fit_.base_ns);
    found.push_back({static_cast<double>(minus(pair.theirs_ns, fit_.origin_ns)), static_cast<double>(distance)});
    distances.push_back(found.back().distance_ns);
  }
  fit_.usual_ns = median(distances);
  fit_.knots = {{0, fit_.usual_ns}};
  if (pairs.size() >= kMinForLines) fit_lines(found);
  for (std::size_t i = 0; i < found.size(); ++i)
    distances[i] = std::fabs(found[i].distance_ns - beyond_base(found[i].at_ns));
  // Whole microseconds hide up to 1.
  const auto is_coarse = [&](std::int64_t ClockPair::* side) {
    return std::all_of(pairs.begin(), pairs.end(), [&](const ClockPair& pair) { return pair.*side % 1000 == 0; });
  };
  const bool are_coarse = is_coarse(&ClockPair::ours_ns) || is_coarse(&ClockPair::theirs_ns);
  fit_.error_ns = std::max(quantile(distances, 0.9), are_coarse ? 1000.0 : 0);
}

// Medians of blocks of neighbours are not moved by single outliers. Begins with one line, and bends it at the block
// that is furthest off until none is clearly off.
void ClockCurve::fit_lines(const std::vector<Knot>& pairs) {
  const std::size_t count = std::min(kMaxBlocks, pairs.size() / kPairsPerBlock);
  std::vector<Knot> blocks;
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<double> at, distance;
    for (std::size_t i = k * pairs.size() / count; i < (k + 1) * pairs.size() / count; ++i) {
      at.push_back(pairs[i].at_ns);
      distance.push_back(pairs[i].distance_ns);
    }
    const Knot block{median(at), median(distance)};
    if (blocks.empty() || block.at_ns > blocks.back().at_ns) blocks.push_back(block);
  }
  if (blocks.size() < 3) return;
  const double noise = noise_of(pairs), each = static_cast<double>(pairs.size()) / static_cast<double>(count);
  // 1.25: a median is that much less certain than a mean. Times are whole nanoseconds.
  const double tolerated = std::max({kClearlyOff * 1.25 * noise / std::sqrt(each), noise, 1.0});
  const std::vector<Knot> constant = fit_.knots;
  std::vector<std::size_t> at = {0, blocks.size() - 1};
  for (bool is_first = true;; is_first = false) {
    double worst = tolerated;
    std::size_t worst_at = SIZE_MAX;
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      const double off = std::fabs(blocks[k].distance_ns - beyond_base(blocks[k].at_ns));
      if (off <= worst || (!is_first && std::binary_search(at.begin(), at.end(), k))) continue;
      worst = off;
      worst_at = k;
    }
    if (worst_at == SIZE_MAX || at.size() == kMaxKnots) break;
    if (!is_first) at.insert(std::upper_bound(at.begin(), at.end(), worst_at), worst_at);
    fit_.knots = joined_lines(blocks, at);
  }
  for (std::size_t i = 1; i < fit_.knots.size(); ++i) {
    const double rise = fit_.knots[i].distance_ns - fit_.knots[i - 1].distance_ns;
    if (std::fabs(rise) <= kSteepest * (fit_.knots[i].at_ns - fit_.knots[i - 1].at_ns)) continue;
    fit_.knots = constant;
    return;
  }
}

double ClockCurve::beyond_base(double at_ns) const noexcept {
  if (fit_.knots.empty()) return 0;
  if (fit_.knots.size() == 1) return fit_.knots.front().distance_ns;
  auto after = std::upper_bound(fit_.knots.begin() + 1, fit_.knots.end() - 1, at_ns,
                                [](double at, const Knot& knot) { return at < knot.at_ns; });
  const Knot &from = after[-1], &to = *after;
  return from.distance_ns + (to.distance_ns - from.distance_ns) * (at_ns - from.at_ns) / (to.at_ns - from.at_ns);
}

std::int64_t ClockCurve::distance_ns(std::int64_t theirs_ns) const noexcept {
  const std::int64_t beyond = std::llround(beyond_base(static_cast<double>(minus(theirs_ns, fit_.origin_ns))));
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(fit_.base_ns) + static_cast<std::uint64_t>(beyond));
}

std::optional<double> ClockCurve::drift_ppm() const noexcept {
  if (!is_drifting()) return std::nullopt;
  return (fit_.knots.back().distance_ns - fit_.knots.front().distance_ns) /
         (fit_.knots.back().at_ns - fit_.knots.front().at_ns) * 1e6;
}

}  // namespace weir
