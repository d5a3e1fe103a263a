// Distributions in fixed memory: a histogram with logarithmic buckets, and counts over time whose buckets widen as the
// time grows. Know numbers only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace weir::amd {

inline constexpr std::int64_t kNoTime = INT64_MIN;

// Values from 0 on. Up to 32 each value has a bucket of its own; beyond, sixteen buckets per power of two, so that a
// quantile is at most 1/16 below the value that it stands for.
class LogHistogram {
 public:
  void add(std::uint64_t value, std::uint64_t times = 1);
  void merge(const LogHistogram& other);
  std::uint64_t count() const { return count_; }
  std::optional<std::uint64_t> min() const;
  std::optional<std::uint64_t> max() const;
  std::optional<double> mean() const;
  // The lower end of the bucket that holds the sample of this rank (and never less than the smallest, or more than the
  // greatest sample); nothing without samples.
  std::optional<std::uint64_t> quantile(double level) const;
  // Samples that are at least `value`, where `value` begins a bucket (all up to 32, and powers of two).
  std::uint64_t at_least(std::uint64_t value) const;

 private:
  static std::size_t bucket(std::uint64_t value);
  static std::uint64_t begin(std::size_t bucket);
  std::vector<std::uint64_t> buckets_;  // grows to the greatest bucket in use, at most 976
  std::uint64_t count_ = 0, min_ = UINT64_MAX, max_ = 0;
  double sum_ = 0;
};

// How many per stretch of time. Stretches are 1 ms at first; where the time outgrows kMost of them, pairs are put
// together, so that each is twice as wide.
class TimeCounts {
 public:
  static constexpr std::size_t kMost = 256;
  void add(std::int64_t time_ns);                      // times a little before the first count as the first
  std::int64_t begin_ns() const { return begin_ns_; }  // kNoTime where nothing was counted
  std::int64_t width_ns() const { return width_ns_; }
  // From begin_ns on; the last one is not over yet.
  const std::vector<std::uint32_t>& counts() const { return counts_; }

 private:
  std::int64_t begin_ns_ = kNoTime, width_ns_ = 1'000'000;
  std::vector<std::uint32_t> counts_;
};

}  // namespace weir::amd
