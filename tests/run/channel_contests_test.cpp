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

TEST(ChannelContests, TheMutexIsBesideEveryChannelAndTheFactorsOfTheDocumentAreJudged) {
  const ChannelContests contests = judge_contests(channel_run({
      channel_result("send_latency/small/spsc", {{8}}),
      channel_result("send_latency/small/mpsc", {{10}}),
      channel_result("send_latency/small/boost_spsc", {{20}}),
      channel_result("send_latency/small/mutex_deque", {{50}}),
      channel_result("throughput/batch/1000/spsc", {{30e6}}, Unit::per_second),
      channel_result("throughput/batch/1000/mutex_deque", {{5e6}}, Unit::per_second),
      channel_result("request/round_trip/mpsc", {{900}}),
  }));
  EXPECT_EQ(contests.standings[0].mutex, "mutex_deque");
  EXPECT_DOUBLE_EQ(*contests.standings[0].times_mutex, 6.25);
  EXPECT_DOUBLE_EQ(*contests.standings[2].times_mutex, 2.5) << "other people's queues beat it as well";
  EXPECT_FALSE(contests.standings[3].mutex) << "a mutex is not compared with itself";
  EXPECT_DOUBLE_EQ(*contests.standings[4].times_mutex, 6) << "of time, whatever the unit";
  EXPECT_FALSE(contests.standings[6].mutex);
  ASSERT_EQ(contests.factors.size(), 2u) << "only those whose two sides were measured";
  EXPECT_EQ(contests.factors[0].place, "send_latency/small");
  EXPECT_EQ(contests.factors[0].channel, "spsc");
  EXPECT_DOUBLE_EQ(contests.factors[0].speedup, 6.25);
  EXPECT_TRUE(contests.factors[0].is_met);
  EXPECT_DOUBLE_EQ(contests.factors[1].wanted, 10);
  EXPECT_FALSE(contests.factors[1].is_met);
}

const ChannelCriterion* criterion(const ChannelContests& contests, std::string_view name) {
  for (const ChannelCriterion& one : contests.criteria)
    if (one.name == name) return &one;
  return nullptr;
}

TEST(ChannelContests, CriteriaPassAndFailByTheirNumbers) {
  std::vector<ChannelResult> results = {
      channel_result("send_latency/small/spsc", {{8}, {9}}),
      channel_result("send_latency/small/mutex_deque", {{50}, {51}}),
      channel_result("mutex_latency/pop/mutex_deque", {{1}}),
      channel_result("throughput/batch/10/spsc", {{10e6}}, Unit::per_second),
      channel_result("throughput/batch/100/spsc", {{20e6}}, Unit::per_second),
      channel_result("throughput/batch/10000/spsc", {{17e6}}, Unit::per_second),
      channel_result("payload_clone/1KB/payload", {{13}}),
      channel_result("payload_clone/1MB/payload", {{13.5}}),
      channel_result("contention/4x250/mpsc", {{60e3}}),
      channel_result("contention/1x1000/mpsc", {{50e3}}),
      channel_result("contention/4x250/mutex_deque", {{300e3}}),
      channel_result("contention/1x1000/mutex_deque", {{100e3}}),
  };
  const ChannelContests good = judge_contests(channel_run(results));
  ASSERT_EQ(good.criteria.size(), 4u);
  for (const ChannelCriterion& one : good.criteria) EXPECT_TRUE(one.is_met) << one.text;
  EXPECT_DOUBLE_EQ(criterion(good, "linear_throughput")->value, 0.85);
  EXPECT_DOUBLE_EQ(criterion(good, "contention_resilience")->value, 1.2);
  EXPECT_NE(criterion(good, "contention_resilience")->text.find("mutex 3.00x"), std::string::npos);
  EXPECT_EQ(criterion(good, "beats_mutex")->text,
            "the mutex is faster in 0 of 3 benchmarks; 2.00x as fast as the mutex at least (contention/1x1000)");

  results[0] = channel_result("send_latency/small/spsc", {{60}, {61}});
  results[5] = channel_result("throughput/batch/10000/spsc", {{10e6}}, Unit::per_second);
  results[7] = channel_result("payload_clone/1MB/payload", {{1300}});
  results[9] = channel_result("contention/1x1000/mpsc", {{20e3}});
  const ChannelContests bad = judge_contests(channel_run(results));
  ASSERT_EQ(bad.criteria.size(), 4u);
  for (const ChannelCriterion& one : bad.criteria) EXPECT_FALSE(one.is_met) << one.text;
  EXPECT_TRUE(judge_contests(channel_run({channel_result("ping_pong/flag/floor", {{1}})})).criteria.empty());
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
