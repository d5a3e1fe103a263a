// Which setting is fastest? Simulated processes: false alarms between identical settings, planted differences, and how
// many trials they take.
#include "lab/try/race.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "measure/bootstrap.h"

namespace weir::trials {
namespace {

// Two processes of the same program differ by about 6 %.
double noise(SplitMix& random) {
  const double normal =
      std::sqrt(-2 * std::log(1 - random.fraction())) * std::cos(6.283185307179586 * random.fraction());
  return std::exp(0.06 * normal);
}

struct Raced {
  Values values;
  std::vector<Change> changes;
  std::size_t trials() const {
    return std::accumulate(values.begin(), values.end(), std::size_t{0},
                           [](std::size_t sum, const auto& of_setting) { return sum + of_setting.size(); });
  }
};

// Settings that take so long; rounds in order, since the values do not depend on it.
Raced race(const std::vector<double>& truth, const RaceOptions& options, SplitMix& random) {
  Raced raced;
  raced.values.resize(truth.size());
  for (bool is_running = true; is_running;) {
    is_running = false;
    const std::vector<bool> is_wanted = wanted_by_race(raced.values, options);
    for (std::size_t i = 0; i < truth.size(); ++i) {
      if (!is_wanted[i]) continue;
      raced.values[i].push_back((options.is_less_better ? truth[i] : 1 / truth[i]) * noise(random));
      is_running = true;
    }
  }
  raced.changes = compare_to_baseline(raced.values, options);
  return raced;
}

struct Alarms {
  int runs = 0, false_alarms = 0;
};

Alarms alarms_among(std::size_t settings, std::size_t trials, int runs, std::uint64_t seed) {
  SplitMix random(seed);
  RaceOptions options;
  options.trials = trials;
  Alarms alarms;
  for (alarms.runs = 0; alarms.runs < runs; ++alarms.runs) {
    const Raced raced = race(std::vector<double>(settings, 1.0), options, random);
    for (std::size_t i = 1; i < settings; ++i)
      if (raced.changes[i].verdict == Verdict::slower || raced.changes[i].verdict == Verdict::faster) {
        ++alarms.false_alarms;
        break;
      }
  }
  return alarms;
}

TEST(Race, identical_settings_are_rarely_called_different) {
  for (const std::size_t settings : {2U, 6U}) {
    const Alarms alarms = alarms_among(settings, 10, 200, 5 + settings);
    EXPECT_LE(alarms.false_alarms, 2) << settings;
  }
}

TEST(Race, slow_settings_leave_early) {
  SplitMix random(7);
  std::vector<double> truth(16, 1.5);
  truth[0] = truth[9] = 1;
  RaceOptions options;
  options.trials = 20;
  const Raced raced = race(truth, options, random);
  EXPECT_LT(raced.trials(), 16U * 20 / 2);
  for (std::size_t i = 1; i < truth.size(); ++i)
    EXPECT_EQ(raced.changes[i].verdict == Verdict::slower, truth[i] > 1) << i;
  EXPECT_EQ(raced.values[0].size(), 20U);
}

TEST(Race, a_clear_difference_of_two_ends_it_and_rates_are_read_the_other_way) {
  for (const bool is_less_better : {true, false}) {
    SplitMix random(8);
    RaceOptions options;
    options.trials = 50;
    options.is_less_better = is_less_better;
    const Raced slower = race({1, 1.6}, options, random), faster = race({1.6, 1}, options, random);
    EXPECT_EQ(slower.changes[1].verdict, Verdict::slower);
    EXPECT_EQ(faster.changes[1].verdict, Verdict::faster);
    EXPECT_LT(slower.trials(), 50U);
    EXPECT_LT(faster.trials(), 50U);
  }
}

TEST(Race, equal_values_end_too) {
  SplitMix random(9);
  RaceOptions options;
  Values values(3);
  for (int round = 0; round < 20; ++round) {
    const std::vector<bool> is_wanted = wanted_by_race(values, options);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (is_wanted[i]) values[i].push_back(i == 2 ? 2.0 : 1.0);
  }
  const std::vector<Change> changes = compare_to_baseline(values, options);
  EXPECT_EQ(changes[1].verdict, Verdict::same);
  EXPECT_EQ(changes[2].verdict, Verdict::slower);
}

TEST(Race, the_variable_that_matters_is_found) {
  const Design design =
      design_of({parse_variable_axis("A=1,2"), parse_variable_axis("B=1,2,3"), parse_variable_axis("C=1,2")}, 1);
  SplitMix random(10);
  Values values(design.settings.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    for (int trial = 0; trial < 6; ++trial)
      values[i].push_back((design.settings[i][1] == 2 ? 1.2 : 1.0) * noise(random));
  const std::vector<Effect> effects = effects_of(design, values, {});
  ASSERT_EQ(effects.size(), 4U);  // A=2, B=2, B=3, C=2
  for (const Effect& effect : effects) {
    const bool matters = effect.factor == 1 && effect.value == 2;
    EXPECT_EQ(effect.change.verdict == Verdict::slower, matters) << effect.factor << " " << effect.value;
    EXPECT_NE(effect.change.verdict, Verdict::faster);
    EXPECT_EQ(effect.pairs, effect.factor == 1 ? 4U : 6U);
    EXPECT_NEAR(*effect.change.ratio, matters ? 1.2 : *effect.change.ratio, 0.06);
  }
}

TEST(Race, long_simulation) {
  if (std::getenv("WEIR_LONG_TESTS") == nullptr) GTEST_SKIP() << "set WEIR_LONG_TESTS=1 to run it";
  for (const std::size_t settings : {2U, 6U, 16U})
    for (const std::size_t trials : {10U, 20U}) {
      const int runs = settings == 16 ? 200 : 1000;
      const Alarms alarms = alarms_among(settings, trials, runs, 31);
      int found = 0;
      double share = 0;
      SplitMix random(32);
      RaceOptions options;
      options.trials = trials;
      for (int i = 0; i < runs; ++i) {
        std::vector<double> truth(settings, 1);
        truth[settings / 2] = 1.15;
        const Raced raced = race(truth, options, random);
        found += raced.changes[settings / 2].verdict == Verdict::slower ? 1 : 0;
        share += static_cast<double>(raced.trials()) / static_cast<double>(settings * trials) / runs;
      }
      fmt::print("| {} | {} | {:.1f} % | {:.0f} % | {:.0f} % |\n", settings, trials,
                 100.0 * alarms.false_alarms / alarms.runs, 100.0 * found / runs, 100 * share);
      EXPECT_LE(alarms.false_alarms, alarms.runs / 100 + 1) << settings << " " << trials;
    }
}

}  // namespace
}  // namespace weir::trials
