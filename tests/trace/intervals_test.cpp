#include "trace/intervals.h"

#include <gtest/gtest.h>

#include <bitset>
#include <cstdint>

#include "support/random_timeline.h"

namespace weir {
namespace {

TEST(Intervals, UnionDropsEmptyOnesAndJoinsWhatTouches) {
  EXPECT_EQ(unite_all({{5, 8}, {0, 2}, {2, 3}, {4, 4}, {6, 7}}), (TimeIntervals{{0, 3}, {5, 8}}));
  EXPECT_TRUE(unite_all({}).empty());
  EXPECT_TRUE(unite_all({{3, 3}}).empty());
}

TEST(Intervals, OneHoleMayCutSeveral) {
  const TimeIntervals a = {{0, 10}, {20, 30}, {40, 50}};
  const TimeIntervals hole = {{5, 45}};
  EXPECT_EQ(subtract(a, hole), (TimeIntervals{{0, 5}, {45, 50}}));
  EXPECT_EQ(intersect(a, hole), (TimeIntervals{{5, 10}, {20, 30}, {40, 45}}));
  EXPECT_EQ(unite(a, hole), (TimeIntervals{{0, 50}}));
  EXPECT_EQ(total_ns(a), 30u);
}

TEST(Intervals, DistancesBeyondASignedNumber) {
  EXPECT_EQ(distance_ns(INT64_MIN, INT64_MAX), UINT64_MAX);
  EXPECT_EQ(distance_ns(5, 4), 0u);
  EXPECT_EQ(total_ns(unite_all({{INT64_MIN + 1, 0}, {0, INT64_MAX}})), UINT64_MAX - 1);
}

using Bits = std::bitset<64>;

Bits bits_of(const std::vector<TimeInterval>& stretches) {
  Bits bits;
  for (const TimeInterval& stretch : stretches)
    for (std::int64_t ns = stretch.from_ns; ns < stretch.to_ns; ++ns) bits.set(static_cast<std::size_t>(ns));
  return bits;
}

void expect_equal(const TimeIntervals& got, const Bits& wanted) {
  EXPECT_EQ(bits_of(got), wanted);
  EXPECT_EQ(total_ns(got), wanted.count());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_LT(got[i].from_ns, got[i].to_ns);
    if (i > 0) {
      EXPECT_LT(got[i - 1].to_ns, got[i].from_ns);
    }
  }
}

TEST(Intervals, AgreeWithSetsOfNanoseconds) {
  test::RandomTimeline random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<TimeInterval> lists[2];
    for (auto& list : lists)
      for (std::int64_t i = random.below(8); i > 0; --i) {
        const std::int64_t from = random.below(60);
        list.push_back({from, from + random.below(64 - from)});
      }
    const TimeIntervals a = unite_all(lists[0]), b = unite_all(lists[1]);
    const Bits in_a = bits_of(lists[0]), in_b = bits_of(lists[1]);
    expect_equal(a, in_a);
    expect_equal(unite(a, b), in_a | in_b);
    expect_equal(intersect(a, b), in_a & in_b);
    expect_equal(subtract(a, b), in_a & ~in_b);
  }
}

}  // namespace
}  // namespace weir
