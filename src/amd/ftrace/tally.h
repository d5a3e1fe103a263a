// A distribution of lengths in bounded memory: exact while there are few, within 1.6 % beyond. Knows no span.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"

namespace weir::ftrace {

class Tally {
 public:
  void add(std::int64_t ns);  // not negative
  std::uint64_t count() const { return count_; }
  std::int64_t smallest() const { return smallest_; }
  std::int64_t largest() const { return largest_; }
  // Exact for up to kFew values; then the middle of the bucket that holds it. -1 where there is none.
  double quantile(double level) const;
  // {"n", "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns", "quantile_error"}, or null where there is none.
  Json document() const;

  static constexpr std::size_t kFew = 1024;

 private:
  static std::size_t bucket_of(std::uint64_t value);
  static double middle_of(std::size_t bucket);

  std::uint64_t count_ = 0;
  std::int64_t smallest_ = INT64_MAX, largest_ = -1;
  std::vector<std::int64_t> few_;       // empty once there are many
  std::vector<std::uint64_t> buckets_;  // 32 to each power of two
};

}  // namespace weir::ftrace
