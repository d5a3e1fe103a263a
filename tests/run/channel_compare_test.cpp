// Verdicts on channels: how often equal ones are called slower, how often slower ones are found. Synthetic noise with
// fixed seeds: processes differ far more from each other than samples within one.
#include "lab/channels/channel_compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "lab/channels/channel_calibration.h"
#include "run/channel_testing.h"
#include "support/gauss.h"

namespace weir::testing {
namespace {

using channel_bench::Unit;

enum class Noise {
  spread,    // each process has its level, up to 20 % off to either side
  bell,      // the same with a standard deviation of 20 %
  bistable,  // half of the processes are three times as fast as the others
};

std::vector<double> side(SplitMix& random, Noise noise, std::size_t processes, double level) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < processes; ++i) {
    double factor = std::exp(0.02 * gauss(random));
    if (noise == Noise::spread) factor *= 1 + 0.4 * (random.fraction() - 0.5);
    if (noise == Noise::bell) factor *= std::exp(0.2 * gauss(random));
    if (noise == Noise::bistable && random.fraction() < 0.5) factor *= 3;
    medians.push_back(level * factor);
  }
  return medians;
}

// How many of `runs` comparisons of `benchmarks` each have any benchmark that is called slower or faster.
int count_alarms(Noise noise, std::size_t processes, int runs, std::size_t benchmarks, double slowdown, Verdict wanted,
                 std::uint64_t seed) {
  SplitMix random(seed);
  int alarms = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<ChannelChange> changes(benchmarks);
    std::vector<Change*> pointers;
    for (ChannelChange& change : changes) {
      change.baseline = side(random, noise, processes, 100);
      change.test = side(random, noise, processes, 100 * slowdown);
      measure_channel({}, change);
      pointers.push_back(&change);
    }
    decide(pointers, {});
    bool has_alarm = false;
    for (const ChannelChange& change : changes)
      has_alarm = has_alarm || change.verdict == wanted ||
                  (wanted == Verdict::slower && slowdown == 1 && change.verdict == Verdict::faster);
    alarms += has_alarm ? 1 : 0;
  }
  return alarms;
}

TEST(ChannelChange, EqualSidesAreRarelyCalledDifferent) {
  for (const Noise noise : {Noise::spread, Noise::bell, Noise::bistable})
    for (const std::size_t processes : {4U, 5U, 10U}) {
      EXPECT_LE(count_alarms(noise, processes, 400, 1, 1, Verdict::slower, processes), 6)
          << static_cast<int>(noise) << " " << processes;
    }
}

TEST(ChannelChange, NorIsAnyOfTwentyBenchmarks) {
  for (const Noise noise : {Noise::spread, Noise::bistable})
    EXPECT_LE(count_alarms(noise, 10, 100, 20, 1, Verdict::slower, 7), 2) << static_cast<int>(noise);
}

TEST(ChannelChange, ASlowdownOfThirtyPercentIsFoundWithTenProcesses) {
  EXPECT_GE(count_alarms(Noise::spread, 10, 300, 1, 1.3, Verdict::slower, 11), 270);
  EXPECT_GE(count_alarms(Noise::bell, 10, 300, 1, 1.3, Verdict::slower, 12), 120);
  EXPECT_GE(count_alarms(Noise::bell, 20, 300, 1, 1.3, Verdict::slower, 13), 250);
  EXPECT_GE(count_alarms(Noise::spread, 10, 300, 1, 1 / 1.3, Verdict::faster, 14), 270);
}

TEST(ChannelChange, QuietEqualSidesAreTheSame) {
  SplitMix random(5);
  ChannelChange change;
  for (int i = 0; i < 10; ++i) {
    change.baseline.push_back(100 * (1 + 0.005 * gauss(random)));
    change.test.push_back(100 * (1 + 0.005 * gauss(random)));
  }
  measure_channel({}, change);
  Change* const pointer = &change;
  EXPECT_EQ(decide({&pointer, 1}, {}), 1u);
  EXPECT_EQ(change.verdict, Verdict::same);
  EXPECT_LT(*change.noise, 1.02);
}

TEST(ChannelChange, ThroughputIsSlowerWhenItFalls) {
  ChannelChange change;
  change.is_less_better = false;
  change.baseline = {10, 10.1, 10.2, 9.9, 9.8};
  change.test = {5, 5.1, 5.2, 4.9, 4.8};
  measure_channel({}, change);
  Change* const pointer = &change;
  decide({&pointer, 1}, {});
  EXPECT_EQ(change.verdict, Verdict::slower);
  EXPECT_NEAR(*change.ratio, 0.5, 0.01);
  EXPECT_NEAR(*change.slowness(), 2, 0.04);
}

TEST(ChannelChange, TooFewProcessesSayWhy) {
  EXPECT_DOUBLE_EQ(smallest_p(3, 3), 0.1);
  EXPECT_DOUBLE_EQ(smallest_p(1, 1), 1);
  ChannelChange change;
  change.baseline = {10, 10.1, 10.2};
  change.test = {20, 20.1, 20.2};
  measure_channel({}, change);
  Change* const pointer = &change;
  decide({&pointer, 1}, {});
  EXPECT_EQ(change.verdict, Verdict::ambiguous);
  EXPECT_EQ(change.reason, "3 against 3 processes cannot show a change at 1 %; 5 on each side can");

  ChannelChange single;
  single.baseline = {10};
  single.test = {20};
  measure_channel({}, single);
  EXPECT_FALSE(single.p);
  EXPECT_NE(single.reason.find("--processes"), std::string::npos) << single.reason;
}

TEST(ChannelNoise, GrowsWithScatterAndShrinksWithProcesses) {
  SplitMix random(9);
  const auto few = side(random, Noise::bell, 6, 1), many = side(random, Noise::bell, 40, 1);
  const auto noise = [](const std::vector<double>& values) {
    ChannelChange change;
    change.baseline = change.test = values;
    measure_channel({}, change);
    return change.noise;
  };
  const auto small = noise(many), large = noise(few);
  ASSERT_TRUE(small && large);
  EXPECT_GT(*large, *small);
  EXPECT_GT(*small, 1.02);
  EXPECT_LT(*small, 1.2);
  EXPECT_FALSE(noise({1}));
}

std::vector<std::vector<double>> processes(SplitMix& random, double level, int count = 10) {
  std::vector<std::vector<double>> all;
  for (int i = 0; i < count; ++i) all.push_back({level * (1 + 0.01 * gauss(random))});
  return all;
}

TEST(ChannelComparison, MatchesByIdAndJudgesOurs) {
  SplitMix random(3);
  const ChannelRun before = channel_run({channel_result("a/x/spsc", processes(random, 100)),
                                         channel_result("a/x/boost", processes(random, 100)),
                                         channel_result("a/gone/spsc", processes(random, 100))});
  ChannelRun after = channel_run({channel_result("a/new/spsc", processes(random, 100)),
                                  channel_result("a/x/boost", processes(random, 150)),
                                  channel_result("a/x/spsc", processes(random, 100))});
  const ChannelComparison comparison = compare_channels(before, "main", after);
  ASSERT_EQ(comparison.changes.size(), 2u);
  EXPECT_EQ(comparison.baseline_only, std::vector<std::string>{"a/gone/spsc"});
  EXPECT_EQ(comparison.test_only, std::vector<std::string>{"a/new/spsc"});
  EXPECT_EQ(comparison.changes[0].verdict, Verdict::slower);  // a control
  EXPECT_EQ(comparison.changes[1].verdict, Verdict::same);
  EXPECT_EQ(comparison.hypotheses, 1u);
  EXPECT_EQ(exit_code(comparison, true), 0);
  ASSERT_FALSE(comparison.notes.empty());
  EXPECT_NE(comparison.notes.back().find("controls"), std::string::npos) << comparison.notes.back();

  after.results[2] = channel_result("a/x/spsc", processes(random, 130));
  EXPECT_EQ(exit_code(compare_channels(before, "main", after), false), 3);
  after.results[2] = channel_result("a/x/spsc", processes(random, 130, 1));
  EXPECT_EQ(exit_code(compare_channels(before, "main", after), false), 0);
  EXPECT_EQ(exit_code(compare_channels(before, "main", after), true), 4);
  after.results[2].measurements[0].found.failure = "did not end within 20 s";
  const ChannelComparison failed = compare_channels(before, "main", after);
  EXPECT_EQ(exit_code(failed, false), 3);
  EXPECT_EQ(failed.changes[1].reason, "failed: did not end within 20 s");
}

TEST(ChannelComparison, RejectsWhatCannotBeCompared) {
  SplitMix random(3);
  const ChannelRun before = channel_run({channel_result("a/x/spsc", processes(random, 100))});
  const ChannelRun other = channel_run({channel_result("b/x/spsc", processes(random, 100))});
  EXPECT_THROW(compare_channels(before, "main", other), Error);
  ChannelRun larger = before;
  larger.settings.conditions.capacity = 64;
  EXPECT_THROW(compare_channels(before, "main", larger), Error);
  ChannelRun elsewhere = before;
  elsewhere.settings.conditions.cores = {2, 3};
  const ChannelComparison comparison = compare_channels(before, "main", elsewhere);
  ASSERT_EQ(comparison.notes.size(), 1u);
  EXPECT_EQ(comparison.notes[0], "cores differ: 0,1 then, 2,3 now");
}

TEST(ChannelCalibration, CountsAlarmsOfBothRules) {
  SplitMix random(21);
  std::vector<ChannelResult> results;
  for (int i = 0; i < 6; ++i) {
    std::vector<std::vector<double>> medians;
    for (const double value : side(random, Noise::bell, 20, 100)) medians.push_back({value});
    results.push_back(channel_result("noisy/" + std::to_string(i) + "/spsc", medians, Unit::per_second));
  }
  results.push_back(channel_result("quiet/a/spsc", processes(random, 100, 20)));
  const auto calibration = calibrate_channels(channel_run(results), 100);
  ASSERT_TRUE(calibration);
  EXPECT_EQ(calibration->processes, 20u);
  ASSERT_EQ(calibration->groups.size(), 2u);
  EXPECT_GT(calibration->groups[0].plain_single, 0.2);
  EXPECT_GT(calibration->groups[0].plain_sides, 0.05);
  EXPECT_LE(calibration->groups[0].ours, 0.05);
  EXPECT_EQ(calibration->groups[1].plain_single, 0);
  EXPECT_LE(calibration->deals_with_alarm, 0.10);
  EXPECT_EQ(calibration->all.benchmarks, 7u);
  EXPECT_TRUE(calibration->can_alarm);
  std::vector<ChannelResult> many;
  for (int i = 0; i < 10; ++i)
    many.push_back(channel_result("g/" + std::to_string(i) + "/spsc", processes(random, 1, 8)));
  EXPECT_FALSE(calibrate_channels(channel_run(many), 1)->can_alarm);
  EXPECT_FALSE(calibrate_channels(channel_run({channel_result("a/b/c", {{1}, {2}})}), 10));
}

}  // namespace
}  // namespace weir::testing
