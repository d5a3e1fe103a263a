// A distribution of durations in bounded memory. Knows no span.
#include <algorithm>
#include <bit>
#include <cmath>

#include "amd/ftrace/summary.h"
#include "measure/statistics.h"

namespace weir::ftrace {
namespace {

constexpr int kBits = 5;  // 32 buckets per power of two: half of one is 1.6 %
constexpr std::uint64_t kSteps = std::uint64_t{1} << kBits;

}  // namespace

std::size_t Tally::bucket_of(std::uint64_t value) {
  if (value < kSteps) return value;
  const int shift = static_cast<int>(std::bit_width(value)) - 1 - kBits;
  return static_cast<std::size_t>((static_cast<std::uint64_t>(shift) + 1) * kSteps + ((value >> shift) - kSteps));
}

double Tally::middle_of(std::size_t bucket) {
  if (bucket < kSteps) return static_cast<double>(bucket);
  const auto shift = static_cast<int>(bucket / kSteps) - 1;
  return std::ldexp(static_cast<double>(bucket % kSteps + kSteps) + 0.5, shift);
}

void Tally::add(std::int64_t ns) {
  if (ns < 0) return;
  ++count_;
  smallest_ = std::min(smallest_, ns);
  largest_ = std::max(largest_, ns);
  if (buckets_.empty()) {
    few_.push_back(ns);
    if (few_.size() <= kFew) return;
    buckets_.resize(bucket_of(INT64_MAX) + 1);
    for (const std::int64_t value : few_) ++buckets_[bucket_of(static_cast<std::uint64_t>(value))];
    few_ = {};
    return;
  }
  ++buckets_[bucket_of(static_cast<std::uint64_t>(ns))];
}

double Tally::quantile(double level) const {
  if (count_ == 0) return -1;
  if (buckets_.empty()) {
    const std::vector<double> values(few_.begin(), few_.end());
    return weir::quantile(values, level);
  }
  const auto rank = static_cast<std::uint64_t>(level * static_cast<double>(count_ - 1));
  std::uint64_t passed = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    passed += buckets_[bucket];
    if (passed > rank)
      return std::clamp(middle_of(bucket), static_cast<double>(smallest_), static_cast<double>(largest_));
  }
  return static_cast<double>(largest_);
}

Json Tally::document() const {
  if (count_ == 0) return nullptr;
  return {{"count", count_},
          {"min", smallest_},
          {"p50", quantile(0.5)},
          {"p90", quantile(0.9)},
          {"p99", quantile(0.99)},
          {"max", largest_},
          {"quantile_error", buckets_.empty() ? 0.0 : 0.016}};
}

}  // namespace weir::ftrace
