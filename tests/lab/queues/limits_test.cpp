// Limits of the cpu device, which are known, and what is concluded from numbers made by hand.
#include "lab/queues/limits.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

std::unique_ptr<Device> cpu(int workers) {
  return open_device("cpu", {.hardware_queues = 4, .workers = workers, .sim = {}});
}

TEST(QueueDepth, ACallThatTakesMostOfTheHoldWaitedForIt) {
  const std::int64_t end = 60'000'000;
  EXPECT_FALSE(waited_for_hold({0, 5'000}, end));
  EXPECT_TRUE(waited_for_hold({20'000'000, 60'100'000}, end));
  EXPECT_FALSE(waited_for_hold({20'000'000, 30'000'000}, end));  // the host was away for 10 ms
  EXPECT_FALSE(waited_for_hold({59'999'000, 60'000'000}, end));  // too short to tell from a hiccup
}

TEST(QueueDepth, IsTheCapacityOfTheRing) {
  const auto device = cpu(2);
  const QueueDepth depth = measure_queue_depth(*device, 1500);
  ASSERT_TRUE(depth.launches.value.has_value()) << depth.launches.reason;
  EXPECT_EQ(*depth.launches.value, 1024);
  EXPECT_TRUE(depth.waited_ns.has_value());
}

TEST(QueueDepth, SaysMoreWhereTheHostNeverWaits) {
  const auto device = cpu(2);
  const QueueDepth depth = measure_queue_depth(*device, 100);
  EXPECT_FALSE(depth.launches.value.has_value());
  EXPECT_NE(depth.launches.reason.find("more than 100"), std::string::npos) << depth.launches.reason;
}

TEST(ResidentLimit, NeverExceedsTheWorkers) {
  const auto device = cpu(6);
  const ResidentLimit limit = measure_resident_limit(*device, 16);
  EXPECT_LE(limit.most_at_once, 6);
  EXPECT_FALSE(limit.points.empty());
  EXPECT_LE(limit.kernels.value.value_or(1), 6);
  EXPECT_FALSE(limit.kernels.reason.empty());
}

TEST(CopyOverlap, IsWhatWasHiddenOfWhatCouldBe) {
  const std::vector<CopyTime> pair = {{100, 100}, {60, 60}};
  EXPECT_EQ(overlap_of(pair, 100), 1);
  EXPECT_EQ(overlap_of(pair, 160), 0);
  EXPECT_EQ(overlap_of(pair, 130), 0.5);
  EXPECT_EQ(overlap_of(pair, 90), 1);   // noise
  EXPECT_EQ(overlap_of(pair, 200), 0);  // they disturb each other
  // Gaps of one copy that the other fills are not hidden copies: 200 of bytes took 200.
  const std::vector<CopyTime> gaps = {{130, 100}, {130, 100}};
  EXPECT_EQ(overlap_of(gaps, 200), 0);
  EXPECT_EQ(overlap_of(gaps, 130), 1);
  EXPECT_FALSE(overlap_of(std::vector<CopyTime>{{100, 40}, {100, 40}}, 100));
  const std::vector<CopyOverlap::Together> sets = {
      {{CopyDirection::to_device, CopyDirection::to_host}, 1, 0.9},
      {{CopyDirection::to_device, CopyDirection::to_host, CopyDirection::on_device}, 1, 0.3}};
  EXPECT_EQ(engines_at_least(sets), 2);
  EXPECT_EQ(engines_at_least({}), 1);
}

TEST(CopyOverlap, MeasuresAllDirectionsPairsAndTheTriple) {
  const auto device = cpu(3);
  const CopyOverlap overlap = measure_copy_overlap(*device, 1 << 20);
  ASSERT_EQ(overlap.alone.size(), 3u);
  for (const auto& copy : overlap.alone) {
    EXPECT_GT(copy.time_ns, 0);
    EXPECT_EQ(copy.size_bytes % (1 << 20), 0u);
  }
  ASSERT_EQ(overlap.together.size(), 7u);
  for (const auto& set : overlap.together) {
    // On a busy machine copies may take less time together than apart, which says nothing.
    EXPECT_GE(set.overlap.value_or(0), 0);
    EXPECT_LE(set.overlap.value_or(0), 1);
  }
  EXPECT_EQ(overlap.together.back().directions.size(), 3u);
}

TEST(PriorityLevels, ShareSaysWhetherTheyDiffer) {
  EXPECT_EQ(priorities_differ(1.0, 0.2).value, true);
  EXPECT_EQ(priorities_differ(1.0, 0.95).value, false);
  EXPECT_FALSE(priorities_differ(0.2, 0.2).value.has_value());
  std::vector<PriorityLevels::Pair> pairs(3);
  pairs[0].differs = {true, ""};
  pairs[1].differs = {false, ""};
  pairs[2].differs = {true, ""};
  EXPECT_EQ(count_levels(pairs).value, 3);
  pairs[1].differs = {std::nullopt, "why"};
  EXPECT_FALSE(count_levels(pairs).value.has_value());
  EXPECT_NE(count_levels(pairs).reason.find("why"), std::string::npos);
}

TEST(PriorityLevels, OfTheCpuDeviceAllExist) {
  const auto device = cpu(4);
  const PriorityLevels levels = measure_priority_levels(*device);
  EXPECT_EQ(levels.pairs.size(), static_cast<std::size_t>(levels.highest - levels.lowest));
  ASSERT_TRUE(levels.levels.value.has_value()) << levels.levels.reason;
  EXPECT_EQ(*levels.levels.value, levels.highest - levels.lowest + 1);
}

}  // namespace
}  // namespace weir
