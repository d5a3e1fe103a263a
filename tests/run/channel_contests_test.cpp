// Who is told to win: the best competitor, floors, targets, and mutexes that are faster.
#include "lab/channels/channel_contests.h"

#include <gtest/gtest.h>

#include "run/channel_testing.h"

namespace weir::testing {
namespace {

using channel_bench::Unit;

TEST(ChannelContests, TheBestIsNotOursOrAMutex) {
  ChannelRun run = channel_run({
      channel_result("round_trip/one_line/spsc", {{300}}),
      channel_result("round_trip/one_line/mpmc", {{200}}),
      channel_result("round_trip/one_line/boost_spsc", {{400}}),
      channel_result("round_trip/one_line/boost_queue", {{600}}),
      channel_result("round_trip/two_lines/boost_queue", {{1}}),
      channel_result("ping_pong/one_line/floor", {{250}}),
      channel_result("ping_pong/flag/floor", {{240}}),
  });
  run.results[0].target = channel_bench::Target{5000, "< 5 us"};
  run.results[1].target = channel_bench::Target{100, "< 100 ns"};
  const ChannelContests contests = judge_contests(run);
  EXPECT_EQ(contests.standings[0].best, "boost_spsc");
  EXPECT_DOUBLE_EQ(*contests.standings[0].times_best, 0.75);
  EXPECT_EQ(contests.standings[0].floor, "ping_pong/one_line/floor");
  EXPECT_DOUBLE_EQ(*contests.standings[0].times_floor, 1.2);
  EXPECT_EQ(contests.standings[0].is_target_met, true);
  EXPECT_EQ(contests.standings[1].is_target_met, false);
  EXPECT_EQ(contests.standings[2].best, "boost_queue") << "the best beside itself";
  EXPECT_FALSE(contests.standings[4].best);
  EXPECT_FALSE(contests.standings[4].floor) << "that floor was not run";
  EXPECT_FALSE(contests.standings[5].best) << "a floor competes with nobody";
  EXPECT_TRUE(contests.mutex_wins.empty());
}

TEST(ChannelContests, FactorsAreOfTimeWhateverTheUnit) {
  const ChannelContests contests = judge_contests(channel_run({
      channel_result("throughput/10/spsc", {{5e6}}, Unit::per_second),
      channel_result("throughput/10/boost_spsc", {{10e6}}, Unit::per_second),
      channel_result("throughput/10/boost_queue", {{2e6}}, Unit::per_second),
  }));
  EXPECT_EQ(contests.standings[0].best, "boost_spsc");
  EXPECT_DOUBLE_EQ(*contests.standings[0].times_best, 2);
}

TEST(ChannelContests, AMutexThatWinsIsNamed) {
  const ChannelContests contests = judge_contests(channel_run({
      channel_result("contention/4x250/mpsc", {{130}, {131}}),
      channel_result("contention/4x250/mpmc", {{90}, {200}}),  // not clearly slower
      channel_result("contention/4x250/mutex_deque", {{100}, {101}}),
  }));
  ASSERT_EQ(contests.mutex_wins.size(), 1u);
  EXPECT_EQ(contests.mutex_wins[0].channel, "mpsc");
  EXPECT_EQ(contests.mutex_wins[0].mutex, "mutex_deque");
  EXPECT_NEAR(contests.mutex_wins[0].factor, 1.3, 0.01);
  EXPECT_EQ(contests.standings[0].best, "mutex_deque");
}

TEST(ChannelContests, WhatHasNoValueHasNoStanding) {
  ChannelRun run = channel_run({channel_result("a/b/spsc", {}), channel_result("a/b/boost", {{1}})});
  run.results[0].target = channel_bench::Target{1, "x"};
  const ChannelContests contests = judge_contests(run);
  EXPECT_FALSE(contests.standings[0].best || contests.standings[0].is_target_met);
  EXPECT_FALSE(contests.standings[1].best);
}

}  // namespace
}  // namespace weir::testing
