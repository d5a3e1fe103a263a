// Distributions in fixed memory: a histogram with logarithmic buckets, and counts over time whose buckets widen as the
// time span grows. Knows only numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::amd {

inline constexpr std::int64_t kNoTime = INT64_MIN;

// Takes values of 0 and above. Values up to 32 have a bucket each; above that there are sixteen buckets per power of
// two, so a quantile is at most 1/16 below the true value.
class LogHistogram {
 public:
  void add(std::uint64_t value, std::uint64_t times = 1);
  void merge(const LogHistogram& other);
  std::uint64_t count() const { return count_; }
  std::optional<std::uint64_t> min() const;
  std::optional<std::uint64_t> max() const;
  std::optional<double> mean() const;
  // The lower end of the bucket that holds the sample of this rank, clamped to the smallest and greatest sample;
  // nothing without samples.
  std::optional<std::uint64_t> quantile(double level) const;
  // Counts samples of at least `value`, which must be the start of a bucket (any value up to 32, or a power of two).
  std::uint64_t at_least(std::uint64_t value) const;

 private:
  static std::size_t bucket(std::uint64_t value);
  static std::uint64_t begin(std::size_t bucket);
  std::vector<std::uint64_t> buckets_;  // grows up to the highest bucket in use, at most 976
  std::uint64_t count_ = 0, min_ = UINT64_MAX, max_ = 0;
  double sum_ = 0;
};

// Counts per time interval. Intervals start at 1 ms; when more than kMax would be needed, neighbours are merged in
// pairs, which doubles the width.
class TimeCounts {
 public:
  static constexpr std::size_t kMax = 256;
  void add(std::int64_t time_ns);                      // times slightly before the first are counted with the first
  std::int64_t begin_ns() const { return begin_ns_; }  // kNoTime if nothing was counted
  std::int64_t width_ns() const { return width_ns_; }
  // Starts at begin_ns; the last interval is not complete yet.
  const std::vector<std::uint32_t>& counts() const { return counts_; }

 private:
  std::int64_t begin_ns_ = kNoTime, width_ns_ = 1'000'000;
  std::vector<std::uint32_t> counts_;
};

}  // namespace weir::amd
