#include "amd/log/log_counts.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::amd {

// Values 0 to 31 have a bucket each; 32 to 63 share 16 buckets of two values, 64 to 127 16 of four, and so on.
std::size_t LogHistogram::bucket(std::uint64_t value) {
  if (value < 32) return value;
  const int octave = 63 - std::countl_zero(value);  // 5 or more
  return 32 + static_cast<std::size_t>(octave - 5) * 16 + static_cast<std::size_t>((value >> (octave - 4)) & 15);
}

std::uint64_t LogHistogram::begin(std::size_t bucket) {
  if (bucket < 32) return bucket;
  const std::size_t octave = (bucket - 32) / 16 + 5;
  return (16 + static_cast<std::uint64_t>((bucket - 32) % 16)) << (octave - 4);
}

void LogHistogram::add(std::uint64_t value, std::uint64_t times) {
  if (times == 0) return;
  const std::size_t place = bucket(value);
  if (place >= buckets_.size()) buckets_.resize(place + 1);
  buckets_[place] += times;
  count_ += times;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value) * static_cast<double>(times);
}

void LogHistogram::merge(const LogHistogram& other) {
  if (other.buckets_.size() > buckets_.size()) buckets_.resize(other.buckets_.size());
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

std::optional<std::uint64_t> LogHistogram::min() const {
  if (count_ == 0) return std::nullopt;
  return min_;
}

std::optional<std::uint64_t> LogHistogram::max() const {
  if (count_ == 0) return std::nullopt;
  return max_;
}

std::optional<double> LogHistogram::mean() const {
  if (count_ == 0) return std::nullopt;
  return sum_ / static_cast<double>(count_);
}

std::optional<std::uint64_t> LogHistogram::quantile(double level) const {
  if (count_ == 0) return std::nullopt;
  const double wanted = std::ceil(std::clamp(level, 0.0, 1.0) * static_cast<double>(count_));
  const auto rank = static_cast<std::uint64_t>(std::max(1.0, wanted));
  if (rank >= count_) return max_;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::clamp(begin(i), min_, max_);
  }
  return max_;
}

std::uint64_t LogHistogram::at_least(std::uint64_t value) const {
  std::uint64_t sum = 0;
  for (std::size_t i = bucket(value); i < buckets_.size(); ++i) sum += buckets_[i];
  return sum;
}

void TimeCounts::add(std::int64_t time_ns) {
  if (begin_ns_ == kNoTime) begin_ns_ = time_ns;
  // A file may contain any time, so the difference must be computed without overflow.
  const std::uint64_t since =
      time_ns < begin_ns_ ? 0 : static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(begin_ns_);
  while (since / static_cast<std::uint64_t>(width_ns_) >= kMax) {
    for (std::size_t i = 0; i < counts_.size(); i += 2)
      counts_[i / 2] = counts_[i] + (i + 1 < counts_.size() ? counts_[i + 1] : 0);
    counts_.resize((counts_.size() + 1) / 2);
    width_ns_ *= 2;
  }
  const auto place = static_cast<std::size_t>(since / static_cast<std::uint64_t>(width_ns_));
  if (place >= counts_.size()) counts_.resize(place + 1);
  if (counts_[place] != UINT32_MAX) ++counts_[place];
}

}  // namespace weir::amd
