#include "measure/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "measure/statistics.h"

namespace weir {
namespace {

// With more samples, every k-th one is used: the interval is then that of the thinned sample, slightly wider than
// necessary, but a file with ten million samples still takes a fraction of a second.
constexpr std::size_t kMaxResampled = 65'536;

std::vector<double> thinned(std::span<const double> samples) {
  if (samples.size() <= kMaxResampled) return {samples.begin(), samples.end()};
  std::vector<double> kept;
  kept.reserve(kMaxResampled);
  for (std::size_t i = 0; i < kMaxResampled; ++i) kept.push_back(samples[i * samples.size() / kMaxResampled]);
  return kept;
}

// Calls `take(position)` for each of the `count` positions of one resample.
template <class Take>
void draw_positions(SplitMix& random, std::uint32_t count, std::uint32_t block, Take take) {
  if (block <= 1) {
    for (std::uint32_t i = 0; i < count; ++i) take(random.below(count));
    return;
  }
  for (std::uint32_t drawn = 0; drawn < count;) {
    std::uint32_t position = random.below(count);
    for (std::uint32_t i = 0; i < block && drawn < count; ++i, ++drawn) {
      take(position);
      // Wrapping around gives the first and the last samples the same chance as the others.
      if (++position == count) position = 0;
    }
  }
}

Dependence used_dependence(std::span<const double> kept, std::size_t wanted_block) {
  if (wanted_block == 0) return serial_dependence(kept);
  Dependence given;
  given.block = wanted_block;
  return given;
}

// Stores a resample as a histogram over ranks, so that all quantiles come from one pass without sorting.
class Resampler {
 public:
  Resampler(std::span<const double> samples, std::size_t block, std::uint64_t seed)
      : kept_(thinned(samples)), sorted_(kept_), rank_(kept_.size()), times_(kept_.size()), random_(seed) {
    std::vector<std::uint32_t> order(kept_.size());
    std::iota(order.begin(), order.end(), 0U);
    // Equal values keep their order in time, so that ranks are the same with every standard library.
    std::sort(order.begin(), order.end(), [this](std::uint32_t left, std::uint32_t right) {
      return kept_[left] != kept_[right] ? kept_[left] < kept_[right] : left < right;
    });
    for (std::uint32_t rank = 0; rank < order.size(); ++rank) {
      rank_[order[rank]] = rank;
      sorted_[rank] = kept_[order[rank]];
    }
    dependence_ = used_dependence(kept_, block);
    block_ = static_cast<std::uint32_t>(std::min(dependence_.block, kept_.size()));
  }

  void draw() {
    std::fill(times_.begin(), times_.end(), 0U);
    draw_positions(random_, static_cast<std::uint32_t>(kept_.size()), block_,
                   [this](std::uint32_t position) { ++times_[rank_[position]]; });
  }

  double mean() const {
    double sum = 0;
    for (std::size_t i = 0; i < sorted_.size(); ++i) sum += times_[i] * sorted_[i];
    return sum / static_cast<double>(sorted_.size());
  }

  // Type-7 quantiles of the resample; `levels` must ascend.
  void quantiles(std::span<const double> levels, std::span<double> values) const {
    std::size_t rank = 0;
    std::size_t reached = times_[0];  // how much of the resample lies at or before `rank`
    for (std::size_t level = 0; level < levels.size(); ++level) {
      const double place = levels[level] * static_cast<double>(sorted_.size() - 1);
      const auto index = static_cast<std::size_t>(place);
      while (reached <= index) reached += times_[++rank];
      values[level] = sorted_[rank];
      const double part = place - static_cast<double>(index);
      if (part <= 0 || reached > index + 1) continue;
      std::size_t above = rank + 1;
      while (times_[above] == 0) ++above;
      values[level] += part * (sorted_[above] - sorted_[rank]);
    }
  }

  double median() const {
    constexpr std::array kHalf{0.5};
    std::array<double, 1> value{};
    quantiles(kHalf, value);
    return value[0];
  }

  std::size_t size() const { return kept_.size(); }
  std::span<const double> sorted() const { return sorted_; }
  const Dependence& dependence() const { return dependence_; }

 private:
  std::vector<double> kept_;
  std::vector<double> sorted_;
  std::vector<std::uint32_t> rank_;   // of each position
  std::vector<std::uint32_t> times_;  // how often each rank was drawn
  SplitMix random_;
  Dependence dependence_;
  std::uint32_t block_ = 1;
};

// A percentile interval, widened about the estimate for dependence that the blocks were too short to reproduce. Times
// and rates are widened as ratios, so that a positive quantity never gets a negative bound.
Interval percentile_interval(std::vector<double>& replicates, double confidence, double estimate, double stretch) {
  std::sort(replicates.begin(), replicates.end());
  const double tail = (1 - confidence) / 2;
  const Interval found{quantile_sorted(replicates, tail), quantile_sorted(replicates, 1 - tail)};
  if (stretch <= 1) return found;
  if (found.low > 0 && estimate > 0)
    return {std::min(found.low, estimate * std::pow(found.low / estimate, stretch)),
            std::max(found.high, estimate * std::pow(found.high / estimate, stretch))};
  return {std::min(found.low, estimate - stretch * (estimate - found.low)),
          std::max(found.high, estimate + stretch * (found.high - estimate))};
}

double stretch_of(const Dependence& dependence) { return std::sqrt(dependence.inflation / dependence.captured); }

// Flat-top window of Politis and Romano: keeps small lags and fades out the others.
double flat_top(double t) { return t <= 0.5 ? 1 : std::max(0.0, 2 * (1 - t)); }

}  // namespace

int resample_count(std::size_t count, int wanted) {
  constexpr std::size_t kDraws = 4'000'000;
  const std::size_t affordable = kDraws / std::max<std::size_t>(count, 1);
  return std::min(wanted, static_cast<int>(std::clamp<std::size_t>(affordable, 400, 10'000'000)));
}

// Block length after Politis and White (2004, corrected 2009) for the circular bootstrap, computed on ranks.
Dependence serial_dependence(std::span<const double> samples) {
  Dependence found;
  const std::size_t count = samples.size();
  if (count < 8) return found;
  const std::vector<double> ranks = midranks(samples);
  const auto n = static_cast<double>(count);
  const double centre = (n + 1) / 2;
  double variance = 0;
  for (const double rank : ranks) variance += (rank - centre) * (rank - centre);
  if (variance <= 0) return found;

  const auto limit = static_cast<std::size_t>(std::min(n / 2, std::ceil(std::sqrt(n)) + 5));
  std::vector<double> correlation(limit + 1, 1.0);
  for (std::size_t lag = 1; lag <= limit; ++lag) {
    double sum = 0;
    for (std::size_t i = lag; i < count; ++i) sum += (ranks[i] - centre) * (ranks[i - lag] - centre);
    correlation[lag] = sum / variance;
  }
  found.lag1 = correlation[1];

  // The last significant lag is followed by five that are not.
  const double noise = 2 * std::sqrt(std::log10(n) / n);
  std::size_t last = 0;
  for (std::size_t lag = 1; lag <= limit && lag <= last + 5; ++lag)
    if (std::fabs(correlation[lag]) >= noise) last = lag;
  // Lag 1 alone is tested at the usual 5 %, because the five-lag rule misses moderate correlation in short runs.
  if (last == 0 && correlation[1] > 1.96 / std::sqrt(n)) last = 1;
  if (last == 0) return found;

  const std::size_t window = std::min(2 * last, limit);
  double spectrum = 1;
  double slope = 0;
  for (std::size_t lag = 1; lag <= window; ++lag) {
    const double weight = flat_top(static_cast<double>(lag) / static_cast<double>(window)) * correlation[lag];
    spectrum += 2 * weight;
    slope += 2 * static_cast<double>(lag) * weight;
  }
  // Sample autocorrelations are too small by about (1 + 4 rho) / n, which matters for strong ones.
  const double corrected = std::min(0.97, found.lag1 + (1 + 4 * std::max(0.0, found.lag1)) / n);
  const double first_order = found.lag1 > 0 ? (1 + corrected) / (1 - corrected) : 1;
  found.inflation = std::max({1.0, spectrum, first_order});
  if (found.inflation > 1) {
    const double ratio = spectrum > 0.1 ? slope / spectrum : 0;
    const double from_first_order = found.lag1 > 0 ? 2 * corrected / (1 - corrected * corrected) : 0;
    const double strength = std::max(std::fabs(ratio), from_first_order);
    const double length = std::cbrt(1.5 * strength * strength * n);
    found.block = static_cast<std::size_t>(std::clamp(std::ceil(length), 1.0, std::min(3 * std::sqrt(n), n / 3)));
    // A mean over blocks of b contains lag k in b - k of its b pairs.
    for (std::size_t lag = 1; lag < found.block && lag <= limit; ++lag)
      found.captured += 2 * (1 - static_cast<double>(lag) / static_cast<double>(found.block)) * correlation[lag];
    found.captured = std::clamp(found.captured, 1.0, found.inflation);
  }
  return found;
}

std::optional<Interval> bootstrap_interval(std::span<const double> samples,
                                           const std::function<double(std::span<const double>)>& statistic,
                                           const BootstrapOptions& options) {
  if (samples.size() < kMinForInterval) return std::nullopt;
  const std::vector<double> kept = thinned(samples);
  const auto count = static_cast<std::uint32_t>(kept.size());
  const Dependence dependence = used_dependence(kept, options.block);
  SplitMix random(options.seed);
  std::vector<double> resample(kept.size());
  std::vector<double> replicates(static_cast<std::size_t>(resample_count(kept.size(), options.resamples)));
  for (double& replicate : replicates) {
    std::size_t filled = 0;
    draw_positions(random, count, static_cast<std::uint32_t>(std::min(dependence.block, kept.size())),
                   [&](std::uint32_t position) { resample[filled++] = kept[position]; });
    replicate = statistic(resample);
  }
  return percentile_interval(replicates, options.confidence, statistic(kept), stretch_of(dependence));
}

std::optional<SummaryIntervals> summary_intervals(std::span<const double> samples, const BootstrapOptions& options) {
  if (samples.size() < kMinForInterval) return std::nullopt;
  constexpr std::array kLevels{0.5, 0.95, 0.99};
  Resampler resampler(samples, options.block, options.seed);
  const auto rounds = static_cast<std::size_t>(resample_count(resampler.size(), options.resamples));
  std::array<std::vector<double>, 4> replicates;
  for (auto& list : replicates) list.resize(rounds);
  for (std::size_t i = 0; i < rounds; ++i) {
    resampler.draw();
    std::array<double, 3> values{};
    resampler.quantiles(kLevels, values);
    replicates[0][i] = resampler.mean();
    for (std::size_t k = 0; k < values.size(); ++k) replicates[k + 1][i] = values[k];
  }
  const double stretch = stretch_of(resampler.dependence());
  const auto interval_of = [&](std::size_t which, double estimate) {
    return percentile_interval(replicates[which], options.confidence, estimate, stretch);
  };
  const std::span<const double> sorted = resampler.sorted();
  SummaryIntervals intervals{interval_of(0, mean(sorted)), interval_of(1, quantile_sorted(sorted, 0.5)), {}, {}};
  if (samples.size() >= min_for_quantile(0.95)) intervals.p95 = interval_of(2, quantile_sorted(sorted, 0.95));
  if (samples.size() >= min_for_quantile(0.99)) intervals.p99 = interval_of(3, quantile_sorted(sorted, 0.99));
  return intervals;
}

std::optional<Interval> median_ratio_interval(std::span<const double> test, std::span<const double> baseline,
                                              const BootstrapOptions& options) {
  if (std::min(test.size(), baseline.size()) < kMinForInterval) return std::nullopt;
  // Two independent sequences: the same seed would correlate the two resamples.
  Resampler above(test, options.block, options.seed);
  Resampler below(baseline, options.block, SplitMix(options.seed ^ 0x5bd1e995a1b2c3d4U).next());
  const std::size_t larger = std::max(above.size(), below.size());
  std::vector<double> ratios(static_cast<std::size_t>(resample_count(larger, options.resamples)));
  for (double& ratio : ratios) {
    above.draw();
    below.draw();
    const double divisor = below.median();
    if (divisor == 0) return std::nullopt;
    ratio = above.median() / divisor;
  }
  const auto share = [](double variance, const Resampler& side) { return variance / static_cast<double>(side.size()); };
  const double wanted = share(above.dependence().inflation, above) + share(below.dependence().inflation, below);
  const double captured = share(above.dependence().captured, above) + share(below.dependence().captured, below);
  const double estimate = quantile_sorted(above.sorted(), 0.5) / quantile_sorted(below.sorted(), 0.5);
  const Interval plain = percentile_interval(ratios, options.confidence, estimate, 1);
  // On logarithms, so that a ratio and its inverse are judged alike and no bound becomes negative.
  const double stretch = std::sqrt(wanted / captured);
  if (stretch <= 1 || !(plain.low > 0)) return plain;
  return Interval{std::min(plain.low, estimate * std::pow(plain.low / estimate, stretch)),
                  std::max(plain.high, estimate * std::pow(plain.high / estimate, stretch))};
}

}  // namespace weir
