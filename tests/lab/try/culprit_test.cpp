// Which setting makes a program fail? Simulated programs: how often the right one is named, in how many trials, and how
// often an innocent one is accused.
#include "lab/try/culprit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "measure/bootstrap.h"
#include "run/rounds.h"

namespace weir::trials {
namespace {

std::vector<Factor> numbered_factors(int count, int values) {
  std::vector<Factor> factors;
  for (int i = 0; i < count; ++i) {
    Factor factor{fmt::format("F{}", i), {}};
    for (int value = 0; value < values; ++value) factor.values.emplace_back(std::to_string(value));
    factors.push_back(std::move(factor));
  }
  return factors;
}

// What the issue calls 32 settings, read in four ways.
struct World {
  const char* name;
  int factors, values;
  std::size_t choices;  // of a culprit: 1 is a value, 5 a whole setting of five factors
};
constexpr World kFlat{"one variable of 32 values, one is guilty", 1, 32, 1};
constexpr World kValue{"five on/off variables, one value is guilty", 5, 2, 1};
constexpr World kSetting{"five on/off variables, one combination is guilty", 5, 2, 5};
constexpr World kSwitches{"32 on/off variables, one value is guilty", 32, 2, 1};

struct Rates {
  double named = 0, wrong = 0, within_half = 0, trials = 0;  // trials: mean share of the matrix
};

Rates simulate(const World& world, bool has_culprit, double background, std::size_t trials, int cases,
               std::uint64_t seed, double guilty_rate = 0.3) {
  SplitMix random(seed);
  Rates rates;
  const Design design = design_of(numbered_factors(world.factors, world.values), seed);
  const FailureSearch search(design);
  const std::size_t matrix = 32 * trials;
  for (int i = 0; i < cases; ++i) {
    std::size_t guilty = search.suspects().size();
    std::vector<double> rate(design.settings.size(), background);
    if (has_culprit) {
      do guilty = random.below(static_cast<std::uint32_t>(search.suspects().size()));
      while (search.suspects()[guilty].choices.size() != world.choices);
      for (const std::uint32_t setting : search.suspects()[guilty].settings) rate[setting] = guilty_rate;
    }
    std::vector<Tally> tallies(design.settings.size());
    Judgement judgement = search.judge(tallies);
    std::size_t count = 0;
    RoundsControl control;
    control.wants = [&](std::size_t setting, std::size_t) { return count < matrix && judgement.is_wanted[setting]; };
    control.run = [&](std::size_t setting, std::size_t) {
      ++count;
      ++tallies[setting].trials;
      if (random.fraction() < rate[setting]) ++tallies[setting].failures;
      judgement = search.judge(tallies);
      return true;
    };
    control.is_enough = [&](std::size_t) {
      return count >= matrix ||
             std::find(judgement.is_wanted.begin(), judgement.is_wanted.end(), true) == judgement.is_wanted.end();
    };
    const std::atomic<bool> stop{false};
    run_rounds({.sides = design.settings.size(), .max_rounds = matrix, .seed = random.next()}, control, stop);
    const bool is_named = std::any_of(judgement.culprits.begin(), judgement.culprits.end(),
                                      [&](const Culprit& culprit) { return culprit.suspect == guilty; });
    const bool is_wrong = std::any_of(judgement.culprits.begin(), judgement.culprits.end(),
                                      [&](const Culprit& culprit) { return culprit.suspect != guilty; });
    const double part = 1.0 / cases;
    if (is_named) rates.named += part;
    if (is_wrong) rates.wrong += part;
    if (is_named && 2 * count <= matrix) rates.within_half += part;
    rates.trials += part * static_cast<double>(count) / static_cast<double>(matrix);
  }
  return rates;
}

TEST(Culprit, is_named_among_32_values_in_less_than_half_of_the_matrix) {
  const Rates rates = simulate(kFlat, true, 0, 20, 100, 11);
  EXPECT_GE(rates.within_half, 0.95);
  EXPECT_LE(rates.trials, 0.5);
  EXPECT_EQ(rates.wrong, 0);
}

TEST(Culprit, is_named_against_failures_that_have_no_cause) {
  const Rates rates = simulate(kFlat, true, 0.05, 20, 40, 12);
  EXPECT_GE(rates.named, 0.85);
  EXPECT_LE(rates.trials, 0.5);
}

TEST(Culprit, is_named_as_a_value_of_one_of_five_variables) {
  const Rates rates = simulate(kValue, true, 0, 10, 40, 13);
  EXPECT_GE(rates.named, 0.95);
  EXPECT_LE(rates.trials, 0.5);
}

TEST(Culprit, is_named_as_one_of_32_variables) {
  const Rates rates = simulate(kSwitches, true, 0, 10, 4, 14);
  EXPECT_EQ(rates.named, 1);
  EXPECT_LE(rates.trials, 0.5);
}

TEST(Culprit, nobody_is_accused_where_nobody_is_guilty) {
  for (const double background : {0.0, 0.05, 0.5, 1.0})
    EXPECT_EQ(simulate(kFlat, false, background, 10, 20, 15).wrong, 0) << background;
}

TEST(Culprit, that_always_fails_is_found_at_once) {
  // Each of two settings six times: B always fails, A never does.
  const FailureSearch search(design_of(numbered_factors(1, 2), 1));
  const Judgement judgement = search.judge({{6, 0}, {6, 6}});
  ASSERT_EQ(judgement.culprits.size(), 1U);
  EXPECT_EQ(search.suspects()[judgement.culprits[0].suspect].settings, (std::vector<std::uint32_t>{1}));
  EXPECT_TRUE(search.judge({{2, 0}, {2, 2}}).culprits.empty()) << "two trials prove nothing";
}

TEST(Culprit, both_of_two_are_named) {
  std::vector<Tally> tallies(8, {20, 0});
  tallies[2] = tallies[5] = {20, 18};
  const FailureSearch search(design_of(numbered_factors(1, 8), 1));
  EXPECT_EQ(search.judge(tallies).culprits.size(), 2U);
}

TEST(Culprit, may_be_two_values_of_one_variable) {
  const Design design = design_of(numbered_factors(1, 3), 1);
  const FailureSearch search(design);
  const Judgement judgement = search.judge({{30, 0}, {30, 15}, {30, 14}});
  ASSERT_EQ(judgement.culprits.size(), 1U);
  EXPECT_EQ(words_for(design, search.suspects()[judgement.culprits[0].suspect]), "F0=1 or 2");
}

TEST(Culprit, may_be_two_variables_together) {
  const Design design = design_of(numbered_factors(3, 2), 1);
  std::vector<Tally> tallies;
  for (const Setting& setting : design.settings) tallies.push_back({20, setting[0] == 1 && setting[2] == 0 ? 10U : 0U});
  const FailureSearch search(design);
  const Judgement judgement = search.judge(tallies);
  ASSERT_EQ(judgement.culprits.size(), 1U);
  EXPECT_EQ(words_for(design, search.suspects()[judgement.culprits[0].suspect]), "F0=1 with F2=0");
}

TEST(Culprit, weights_are_those_of_one_world) {
  for (const World& world : {kFlat, kValue, kSwitches}) {
    double sum = 0;
    for (const Suspect& suspect : suspects_of(design_of(numbered_factors(world.factors, world.values), 1)))
      sum += suspect.weight;
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

// The table of docs/try.md.
TEST(Culprit, long_simulation) {
  if (std::getenv("WEIR_LONG_TESTS") == nullptr) GTEST_SKIP() << "set WEIR_LONG_TESTS=1 to run it";
  for (const World& world : {kFlat, kValue, kSetting, kSwitches})
    for (const double background : {0.0, 0.05})
      for (const std::size_t trials : {10U, 20U}) {
        const int cases = world.factors == 32 ? 100 : 500;
        const Rates guilty = simulate(world, true, background, trials, cases, 21);
        const Rates none = simulate(world, false, background, trials, cases, 22);
        fmt::print("| {} | {:.0f} % | {} | {:.1f} % | {:.1f} % | {:.0f} % | {:.1f} % | {:.1f} % | {:.0f} % |\n",
                   world.name, 100 * background, trials, 100 * guilty.named, 100 * guilty.within_half,
                   100 * guilty.trials, 100 * guilty.wrong, 100 * none.wrong, 100 * none.trials);
        std::fflush(stdout);
        EXPECT_LE(none.wrong, 0.01);
        EXPECT_TRUE(background > 0 || guilty.trials <= 0.5);
        EXPECT_TRUE(background > 0 || trials < 20 || guilty.named >= 0.95);
      }
}

}  // namespace
}  // namespace weir::trials
