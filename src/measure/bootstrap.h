// Intervals by resampling, seeded and therefore repeatable. Knows samples as numbers, not their origin.
//
// Consecutive iterations are rarely independent: clocks settle, caches warm up, other programs come and go. Resampling
// single values then gives intervals that are too narrow, so blocks of neighbours are drawn instead (circular block
// bootstrap) whenever the ranks of the samples are correlated in time. docs/statistics.md has the formulas.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace weir {

struct Interval {
  double low = 0;
  double high = 0;
};

// SplitMix64: a counter followed by a mixer, so the n-th draw is the same on every machine and compiler.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t mixed = (state_ += 0x9e3779b97f4a7c15U);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
  // Uniform in [0, limit); the bias is below limit / 2^32.
  std::uint32_t below(std::uint32_t limit) noexcept {
    return static_cast<std::uint32_t>(((next() >> 32) * limit) >> 32);
  }
  // Uniform in [0, 1).
  double fraction() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

// How much neighbouring samples depend on each other, judged on ranks so that a few outliers do not hide it.
struct Dependence {
  double lag1 = 0;        // autocorrelation of the ranks at lag 1
  double inflation = 1;   // variance of a mean of ranks, relative to independent samples; never below 1
  std::size_t block = 1;  // block length for the bootstrap; 1 draws single samples
  double captured =
      1;  // the part of `inflation` that blocks of this length reproduce; intervals are widened by the rest
};
Dependence serial_dependence(std::span<const double> samples);

struct BootstrapOptions {
  int resamples = 10'000;  // an upper limit: see resample_count()
  std::uint64_t seed = 1;
  double confidence = 0.95;
  std::size_t block = 0;  // 0: from serial_dependence(); otherwise intervals are not widened either
};

// Fewer samples get no interval, because a resample of two or three values repeats itself.
inline constexpr std::size_t kMinForInterval = 5;

// The number of samples needed for an interval of a quantile: two must be expected beyond it. p95: 40, p99: 200.
constexpr std::size_t min_for_quantile(double level) {
  return std::max(kMinForInterval, static_cast<std::size_t>(2.000001 / (1 - level)));
}

// The number of resamples for `count` samples: at most 4 million draws in all, but never fewer than 400 resamples.
int resample_count(std::size_t count, int wanted);

// Percentile interval of any statistic; nothing for fewer than kMinForInterval samples.
std::optional<Interval> bootstrap_interval(std::span<const double> samples,
                                           const std::function<double(std::span<const double>)>& statistic,
                                           const BootstrapOptions& options = {});

struct SummaryIntervals {
  Interval mean, p50;
  std::optional<Interval> p95, p99;  // nothing below min_for_quantile()
};
// The intervals of a summary from one set of resamples. 100 samples, 10,000 resamples: 4 to 9 ms
// (one core of a shared Neoverse-V1, 2026-11).
std::optional<SummaryIntervals> summary_intervals(std::span<const double> samples,
                                                  const BootstrapOptions& options = {});

// Interval of median(test) / median(baseline), both resampled independently; nothing if either has fewer than
// kMinForInterval samples or a median of 0 makes the ratio meaningless.
std::optional<Interval> median_ratio_interval(std::span<const double> test, std::span<const double> baseline,
                                              const BootstrapOptions& options = {});

}  // namespace weir
