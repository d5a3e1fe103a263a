#include "amd/log/log_counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <random>

namespace weir::amd {
namespace {

TEST(LogHistogram, has_nothing_to_say_without_samples) {
  const LogHistogram histogram;
  EXPECT_FALSE(histogram.min() || histogram.max() || histogram.mean() || histogram.quantile(0.5));
}

TEST(LogHistogram, a_quantile_is_at_most_a_sixteenth_below_its_sample) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    LogHistogram histogram;
    std::vector<std::uint64_t> samples;
    const int bits = 1 + static_cast<int>(random() % 63);
    for (int i = 0; i < 1000; ++i) {
      samples.push_back(random() >> (63 - bits));
      histogram.add(samples.back());
    }
    std::sort(samples.begin(), samples.end());
    for (const double level : {0.01, 0.5, 0.9, 0.99, 1.0}) {
      const std::uint64_t exact = samples[static_cast<std::size_t>(level * 1000) - 1];
      const std::uint64_t found = *histogram.quantile(level);
      EXPECT_LE(found, exact);
      EXPECT_GE(static_cast<double>(found), static_cast<double>(exact) * 15 / 16);
    }
    EXPECT_EQ(histogram.min(), samples.front());
    EXPECT_EQ(histogram.max(), samples.back());
    EXPECT_EQ(histogram.at_least(0), 1000u);
    EXPECT_EQ(histogram.at_least(16), static_cast<std::uint64_t>(std::count_if(samples.begin(), samples.end(),
                                                                               [](auto v) { return v >= 16; })));
  }
}

TEST(LogHistogram, merging_is_adding) {
  LogHistogram a, b, both;
  for (const std::uint64_t value : std::initializer_list<std::uint64_t>{0, 5, 700}) {
    a.add(value);
    both.add(value);
  }
  for (const std::uint64_t value : std::initializer_list<std::uint64_t>{31, 32, UINT64_MAX}) {
    b.add(value);
    both.add(value);
  }
  a.merge(b);
  EXPECT_EQ(a.count(), 6u);
  for (const double level : {0.1, 0.4, 0.6, 0.9, 1.0}) EXPECT_EQ(a.quantile(level), both.quantile(level));
}

TEST(TimeCounts, widen_as_time_grows_and_lose_nothing) {
  TimeCounts counts;
  std::mt19937_64 random(3);
  std::int64_t now = 1'000'000'000'000;
  const std::int64_t begin = now;
  for (int i = 0; i < 5000; ++i) counts.add(now += static_cast<std::int64_t>(random() % 50'000'000));
  counts.add(begin - 5);
  EXPECT_LE(counts.counts().size(), TimeCounts::kMax);
  EXPECT_EQ(std::accumulate(counts.counts().begin(), counts.counts().end(), 0u), 5001u);
  EXPECT_GE(counts.begin_ns() + counts.width_ns() * static_cast<std::int64_t>(counts.counts().size()), now);
  EXPECT_GT(counts.width_ns(), 1'000'000);
}

TEST(TimeCounts, bear_any_time) {
  TimeCounts counts;
  counts.add(INT64_MIN + 1);
  counts.add(INT64_MAX);
  EXPECT_EQ(std::accumulate(counts.counts().begin(), counts.counts().end(), 0u), 2u);
}

}  // namespace
}  // namespace weir::amd
