#include "lab/overlap/overlap_tune.h"

#include <gtest/gtest.h>

#include <set>

namespace weir {
namespace {

const std::vector<TuneAxis> kAxes = {{"a", {"0", "1", "2"}}, {"b", {"0", "1"}}, {"c", {"0", "1", "2", "3"}}};

// Exposed time with one minimum, at a=2, b=1, c=3.
double exposed(const TuneTrial& trial) {
  const auto value = [&](std::size_t axis) { return std::stod(trial.values[axis]); };
  return 100 * (10 - 2 * value(0) - 3 * value(1) - value(2));
}

TuneControl control_of(double& clock, double each, double budget) {
  TuneControl control;
  control.budget_seconds = budget;
  control.elapsed_seconds = [&clock] { return clock; };
  control.run = [&clock, each](TuneTrial& trial) {
    clock += each;
    trial.exposed_ns = exposed(trial);
    trial.step_ns = 1000 + exposed(trial);
    trial.memory_bytes = 10 + std::stod(trial.values[0]);
    return true;
  };
  return control;
}

TEST(OverlapTune, finds_the_least_exposed_setting) {
  double clock = 0;
  const TuneResult result = tune_overlap(kAxes, control_of(clock, 1, 1000));
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.trials[*result.best].values, (std::vector<std::string>{"2", "1", "3"}));
  EXPECT_EQ(result.combinations, 24u);
  EXPECT_EQ(result.trials.size(), 24u);  // the budget allows for all of them
  std::set<std::vector<std::string>> seen;
  for (const TuneTrial& trial : result.trials) EXPECT_TRUE(seen.insert(trial.values).second) << "tried twice";
}

TEST(OverlapTune, keeps_to_its_budget) {
  double clock = 0;
  const TuneResult result = tune_overlap(kAxes, control_of(clock, 2, 9));
  EXPECT_LE(clock, 9);
  EXPECT_EQ(result.trials.size(), 4u);
  EXPECT_TRUE(result.best);
}

TEST(OverlapTune, runs_once_whatever_the_budget) {
  double clock = 0;
  EXPECT_EQ(tune_overlap(kAxes, control_of(clock, 100, 1)).trials.size(), 1u);
}

TEST(OverlapTune, goes_on_after_failures_and_stops_when_told) {
  double clock = 0;
  TuneControl control = control_of(clock, 1, 1000);
  const auto inner = control.run;
  control.run = [&](TuneTrial& trial) {
    inner(trial);
    if (trial.values[1] == "1") {
      trial = {.values = trial.values};
      trial.failure = "out of memory";
    }
    return true;
  };
  const TuneResult result = tune_overlap(kAxes, control);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.trials[*result.best].values, (std::vector<std::string>{"2", "0", "3"}));
  int runs = 0;
  control.run = [&](TuneTrial& trial) { return ++runs < 3 && inner(trial); };
  const TuneResult stopped = tune_overlap(kAxes, control);
  EXPECT_TRUE(stopped.is_interrupted);
  EXPECT_EQ(stopped.trials.size(), 2u);
}

TEST(OverlapTune, everything_failed_has_no_best) {
  double clock = 0;
  TuneControl control = control_of(clock, 1, 5);
  control.run = [&](TuneTrial& trial) {
    clock += 1;
    trial.failure = "no";
    return true;
  };
  EXPECT_FALSE(tune_overlap(kAxes, control).best);
}

TEST(OverlapTune, the_front_has_what_nothing_else_beats) {
  std::vector<TuneTrial> trials(5);
  const std::pair<double, double> points[] = {{10, 5}, {8, 6}, {9, 7}, {8, 6}, {7, 9}};
  for (std::size_t i = 0; i < 5; ++i) {
    trials[i].step_ns = points[i].first;
    trials[i].memory_bytes = points[i].second;
  }
  trials.emplace_back().failure = "no";
  mark_front(trials);
  const bool expected[] = {true, true, false, true, true, false};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(trials[i].is_on_front, expected[i]) << i;
}

}  // namespace
}  // namespace weir
