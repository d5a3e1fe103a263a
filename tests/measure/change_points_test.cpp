#include "measure/change_points.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace weir {
namespace {

// A series made of levels (in percent above the first), with noise, outliers and drift, all from one seed.
struct Recipe {
  std::vector<std::pair<int, double>> levels;  // how many values, how far above the first
  double noise = 0.02;
  double outliers = 0;     // share of values that are 30 % too long
  double drift = 0;        // over the whole series
  double correlation = 0;  // of neighbouring values (lag 1)
  bool is_heavy = false;   // Student's t with three degrees of freedom instead of the normal distribution
};

double normal(SplitMix& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.fraction()));
  return radius * std::cos(2 * std::numbers::pi * random.fraction());
}

// Variance 1.
double draw(SplitMix& random, bool is_heavy) {
  const double value = normal(random);
  if (!is_heavy) return value;
  double squares = 0;
  for (int i = 0; i < 3; ++i) squares += std::pow(normal(random), 2);
  return value / std::sqrt(squares);
}

std::vector<double> made(const Recipe& recipe, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<double> values;
  int total = 0;
  for (const auto& [count, level] : recipe.levels) total += count;
  const double fresh = std::sqrt(1 - recipe.correlation * recipe.correlation);
  double noise = 0;
  for (int i = 0; i < 50 && recipe.correlation > 0; ++i)
    noise = recipe.correlation * noise + fresh * draw(random, recipe.is_heavy);
  for (const auto& [count, level] : recipe.levels)
    for (int i = 0; i < count; ++i) {
      noise = recipe.correlation * noise + fresh * draw(random, recipe.is_heavy);
      double value = std::log1p(level) + recipe.noise * noise;
      value += recipe.drift * static_cast<double>(values.size()) / total;
      if (random.fraction() < recipe.outliers) value += 0.3;
      values.push_back(1e6 * std::exp(value));
    }
  return values;
}

// Share of seeds for which every step is found within two values of its place, and none else.
double share_right(const Recipe& recipe, int seeds = 200) {
  ChangeDetector detector;
  int right = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const ChangeReport report = detector.judge(made(recipe, 1000 + static_cast<std::uint64_t>(seed)));
    bool is_right = report.changes.size() + 1 == recipe.levels.size();
    std::ptrdiff_t place = 0;
    for (std::size_t i = 0; is_right && i < report.changes.size(); ++i) {
      place += recipe.levels[i].first;
      is_right = std::abs(static_cast<std::ptrdiff_t>(report.changes[i].index) - place) <= 2;
    }
    right += is_right ? 1 : 0;
  }
  return right / static_cast<double>(seeds);
}

double share_changed(const Recipe& recipe, int seeds) {
  ChangeDetector detector;
  int changed = 0;
  for (int seed = 0; seed < seeds; ++seed)
    changed += detector.judge(made(recipe, 5000 + static_cast<std::uint64_t>(seed))).changes.empty() ? 0 : 1;
  return changed / static_cast<double>(seeds);
}

TEST(ChangePoints, finds_a_step_of_five_percent_and_says_how_large_it_is) {
  const std::vector<double> values = {100.4, 98.9, 101.0, 99.6, 106.3, 105.2, 106.9, 105.1};
  const ChangeReport report = ChangeDetector().judge(values);
  ASSERT_EQ(report.changes.size(), 1U);
  EXPECT_EQ(report.changes[0].index, 4U);
  EXPECT_DOUBLE_EQ(report.changes[0].before, 100.0);
  EXPECT_DOUBLE_EQ(report.changes[0].after, 105.75);
  EXPECT_DOUBLE_EQ(report.changes[0].ratio, 105.75 / 100.0);
  EXPECT_LT(report.changes[0].p, 0.06);
  EXPECT_TRUE(report.reason.empty());
}

// docs/history.md has these figures: a step of 5 % is two and a half times the noise of one run.
TEST(ChangePoints, power_is_as_documented) {
  EXPECT_GE(share_right({{{4, 0}, {4, 0.05}}}), 0.33);
  EXPECT_GE(share_right({{{6, 0}, {6, 0.05}}}), 0.38);
  EXPECT_GE(share_right({{{20, 0}, {4, 0.05}}}), 0.28);
  EXPECT_GE(share_right({{{20, 0}, {20, 0.05}}}), 0.85);
  EXPECT_GE(share_right({{{4, 0}, {4, 0.08}}}), 0.75);
  EXPECT_GE(share_right({{{20, 0}, {4, 0.08}}}), 0.8);
  EXPECT_GE(share_right({{{4, 0}, {4, 0.05}}, 0.01}), 0.85);
  EXPECT_GE(share_right({{{4, 0}, {4, -0.08}}}), 0.75);
}

TEST(ChangePoints, mere_noise_is_rarely_a_change) {
  // 1000 series in all, of many lengths.
  double changed = 0;
  for (const int count : {8, 12, 20, 40, 80}) {
    changed += share_changed({{{count, 0}}}, 100) / 10;
    changed += share_changed({{{count, 0}}, 0.1}, 30) * 0.03;
    changed += share_changed({{{count, 0}}, 0.02, 0.1}, 40) * 0.04;
    changed += share_changed({{{count, 0}}, 0.02, 0, 0.01}, 30) * 0.03;
  }
  EXPECT_LE(changed, 0.05);
}

// docs/history.md has the figures of more series: runs of one machine follow each other's temperature and neighbours.
TEST(ChangePoints, correlated_runs_are_rarely_a_change) {
  for (const bool is_heavy : {false, true}) {
    double changed = 0;
    for (const int count : {20, 30, 50, 90, 160})
      changed += share_changed({.levels = {{count, 0}}, .correlation = 0.5, .is_heavy = is_heavy}, 60) / 5;
    EXPECT_LE(changed, 0.05) << is_heavy;
    EXPECT_LE(share_changed({.levels = {{40, 0}}, .correlation = 0.3, .is_heavy = is_heavy}, 150), 0.03) << is_heavy;
    EXPECT_LE(share_changed({.levels = {{40, 0}}, .correlation = 0.8, .is_heavy = is_heavy}, 150), 0.3) << is_heavy;
  }
  EXPECT_LE(share_changed({.levels = {{12, 0}}, .correlation = 0.5}, 200), 0.12);
}

TEST(ChangePoints, clear_steps_of_correlated_runs_are_found) {
  EXPECT_GE(share_right({.levels = {{20, 0}, {20, 0.1}}, .correlation = 0.3}), 0.9);
  EXPECT_GE(share_right({.levels = {{20, 0}, {20, 0.1}}, .correlation = 0.5}), 0.8);
  EXPECT_GE(share_right({.levels = {{40, 0}, {40, 0.05}}, .correlation = 0.5}), 0.6);
}

TEST(ChangePoints, several_steps_are_not_taken_for_correlation) {
  EXPECT_GE(share_right({{{15, 0}, {15, 0.1}, {15, 0.02}, {15, 0.13}}}), 0.85);
  EXPECT_GE(share_right({{{20, 0}, {20, 0.08}, {20, 0.16}, {20, 0.25}, {20, 0.34}}}), 0.85);
}

TEST(ChangePoints, noise_of_any_size_stays_below_its_rate) {
  EXPECT_LE(share_changed({{{30, 0}}, 0.0005}, 200), 0.01);
  EXPECT_LE(share_changed({{{30, 0}}, 0.2}, 400), 0.08);
}

TEST(ChangePoints, finds_two_steps_up_and_up_and_up_and_back) {
  EXPECT_GE(share_right({{{10, 0}, {10, 0.1}, {10, 0.21}}}), 0.85);
  EXPECT_GE(share_right({{{10, 0}, {10, 0.1}, {10, 0}}}), 0.7);
}

TEST(ChangePoints, one_outlier_or_two_are_no_change) {
  std::vector<double> values = made({{{24, 0}}, 0.01}, 3);
  values[11] *= 2;
  EXPECT_TRUE(ChangeDetector().judge(values).changes.empty());
  values[12] *= 2;
  EXPECT_TRUE(ChangeDetector().judge(values).changes.empty());
  values.back() *= 3;
  EXPECT_TRUE(ChangeDetector().judge(values).changes.empty());
}

TEST(ChangePoints, an_outlier_does_not_hide_a_step) {
  std::vector<double> values = made({{{12, 0}, {12, 0.1}}, 0.01}, 4);
  values[5] *= 2;
  values[18] *= 0.6;
  const ChangeReport report = ChangeDetector().judge(values);
  ASSERT_EQ(report.changes.size(), 1U);
  EXPECT_EQ(report.changes[0].index, 12U);
}

TEST(ChangePoints, a_slow_drift_is_told_as_one) {
  const ChangeReport report = ChangeDetector().judge(made({{{60, 0}}, 0.005, 0, 0.1}, 5));
  EXPECT_TRUE(report.changes.empty());
  ASSERT_TRUE(report.drift.has_value());
  EXPECT_NEAR(report.drift->change, 0.1, 0.02);
}

TEST(ChangePoints, series_without_any_noise_are_judged_too) {
  std::vector<double> values(12, 500.0);
  EXPECT_TRUE(ChangeDetector().judge(values).changes.empty());
  for (std::size_t i = 6; i < 12; ++i) values[i] = 540;
  const ChangeReport report = ChangeDetector().judge(values);
  ASSERT_EQ(report.changes.size(), 1U);
  EXPECT_EQ(report.changes[0].index, 6U);
  EXPECT_DOUBLE_EQ(report.changes[0].ratio, 1.08);
}

TEST(ChangePoints, steps_below_the_threshold_do_not_matter) {
  const Recipe recipe{{{20, 0}, {20, 0.01}}, 0.001};
  EXPECT_TRUE(ChangeDetector().judge(made(recipe, 6)).changes.empty());
  ChangeOptions finer;
  finer.threshold = 0.005;
  EXPECT_EQ(ChangeDetector(finer).judge(made(recipe, 6)).changes.size(), 1U);
}

TEST(ChangePoints, a_step_within_the_noise_of_the_runs_themselves_proves_nothing) {
  const std::vector<double> values = made({{{8, 0}, {8, 0.05}}, 0.001}, 7);
  EXPECT_EQ(ChangeDetector().judge(values).changes.size(), 1U);
  EXPECT_TRUE(ChangeDetector().judge(values, std::vector<double>(16, 0.2)).changes.empty());
  EXPECT_EQ(ChangeDetector().judge(values, std::vector<double>(16, 0.005)).changes.size(), 1U);
}

TEST(ChangePoints, short_and_broken_series_have_a_reason) {
  ChangeDetector detector;
  EXPECT_EQ(detector.judge({}).reason, "0 values: a change needs 3 on either side");
  EXPECT_EQ(detector.judge(std::vector<double>{1.0}).reason, "1 value: a change needs 3 on either side");
  EXPECT_FALSE(detector.judge(std::vector<double>{1, 2, 3, 0, 5, 6, 7}).reason.empty());
  EXPECT_FALSE(detector.judge(std::vector<double>{1, 2, 3, NAN, 5, 6, 7}).reason.empty());
  EXPECT_TRUE(detector.judge(std::vector<double>(300, 1.0)).reason.empty());
}

TEST(ChangePoints, long_series_are_judged_by_their_end_and_places_count_from_the_start) {
  const ChangeReport report = ChangeDetector().judge(made({{{400, 0}, {20, 0.1}}, 0.005}, 8));
  ASSERT_EQ(report.changes.size(), 1U);
  EXPECT_EQ(report.changes[0].index, 400U);
}

TEST(ChangePoints, the_unit_makes_no_difference_and_the_answer_is_always_the_same) {
  std::vector<double> values = made({{{10, 0}, {10, 0.06}, {10, 0.01}}}, 9);
  const ChangeReport first = ChangeDetector().judge(values), again = ChangeDetector().judge(values);
  for (double& value : values) value *= 1e-9;
  const ChangeReport smaller = ChangeDetector().judge(values);
  ASSERT_EQ(first.changes.size(), again.changes.size());
  ASSERT_EQ(first.changes.size(), smaller.changes.size());
  for (std::size_t i = 0; i < first.changes.size(); ++i) {
    EXPECT_EQ(first.changes[i].index, again.changes[i].index);
    EXPECT_EQ(first.changes[i].p, again.changes[i].p);
    EXPECT_EQ(first.changes[i].index, smaller.changes[i].index);
  }
}

}  // namespace
}  // namespace weir
