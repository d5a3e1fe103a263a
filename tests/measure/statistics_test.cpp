// Statistics against numpy 1.24.2 and scipy 1.10.1 (tests/measure/reference/statistics_reference.py), and their edges.
#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/gauss.h"

namespace weir {
namespace {

const std::vector<double> kSkewed{12.1, 11.8, 12.4, 11.9, 12.0, 35.2, 12.2, 11.7, 12.3,
                                  12.0, 13.9, 12.1, 11.9, 12.6, 12.0, 18.4, 12.2};
const std::vector<double> kFirst{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
const std::vector<double> kSecond{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06001, 3.14, 1.295};
const std::vector<double> kTiedA{1, 2, 2, 3, 3, 3, 4, 5, 5, 6, 7, 7};
const std::vector<double> kTiedB{2, 3, 3, 4, 4, 5, 6, 6, 7, 8, 8, 9, 9, 9};

std::vector<double> sequence(int count, double base, int step, int modulus) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(base + (i * step % modulus) / 10.0);
  return values;
}
const std::vector<double> kWaveA = sequence(60, 100, 37, 101);
const std::vector<double> kWaveB = sequence(45, 101.5, 53, 97);

std::vector<double> ramp() {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(50 + 0.3 * i + (i * 29 % 17) * 0.5);
  return values;
}

std::vector<double> autoregressive(SplitMix& random, int count, double rho, double sigma) {
  std::vector<double> values;
  double state = gauss(random);
  for (int i = 0; i < count; ++i) {
    values.push_back(1e6 * std::exp(sigma * state));
    state = rho * state + std::sqrt(1 - rho * rho) * gauss(random);
  }
  return values;
}

TEST(Statistics, DescribesLikeNumpy) {
  EXPECT_NEAR(mean(kSkewed), 13.923529411764704, 1e-12);
  EXPECT_NEAR(standard_deviation(kSkewed), 5.705099627938664, 1e-12);
  const std::vector<std::pair<double, double>> expected{{0, 11.7},    {0.01, 11.716}, {0.25, 12.0},   {0.5, 12.1},
                                                        {0.75, 12.4}, {0.95, 21.76},  {0.99, 32.512}, {1, 35.2}};
  for (const auto& [level, value] : expected) EXPECT_NEAR(quantile(kSkewed, level), value, 1e-12) << level;
}

TEST(Statistics, SaysNothingAboutNothing) {
  const std::vector<double> none;
  EXPECT_TRUE(std::isnan(mean(none)));
  EXPECT_TRUE(std::isnan(quantile(none, 0.5)));
  EXPECT_TRUE(std::isnan(standard_deviation(std::vector<double>{1.0})));
  EXPECT_FALSE(summarise(none));
  EXPECT_FALSE(trend(none));
  EXPECT_FALSE(noise_ratio(none));
  EXPECT_EQ(mann_whitney(none, kFirst).p, 1);
  EXPECT_TRUE(holm(none).empty());
}

TEST(Statistics, MeanKeepsDigitsOfLargeOffsets) {
  const std::vector<double> values{1e15 + 1, 1e15 + 2, 1e15 + 3};
  EXPECT_EQ(mean(values), 1e15 + 2);
  EXPECT_EQ(standard_deviation(values), 1);
}

TEST(Statistics, RanksShareTies) {
  const std::vector<double> expected{1.0, 2.5, 2.5, 5.0, 5.0, 5.0, 7.0, 8.5, 8.5, 10.0, 11.5, 11.5};
  EXPECT_EQ(midranks(kTiedA), expected);
}

TEST(Statistics, MannWhitneyLikeScipy) {
  const RankTest small = mann_whitney(kFirst, kSecond);
  EXPECT_TRUE(small.is_exact);
  EXPECT_EQ(small.u, 58);
  EXPECT_NEAR(small.p, 0.13591114767585355, 1e-12);

  const RankTest tiny = mann_whitney(std::span(kFirst).first(3), std::span(kSecond).first(4));
  EXPECT_EQ(tiny.u, 6);
  EXPECT_EQ(tiny.p, 1);

  const RankTest tied = mann_whitney(kTiedA, kTiedB);
  EXPECT_FALSE(tied.is_exact);
  EXPECT_EQ(tied.u, 46);
  EXPECT_NEAR(tied.p, 0.0519193138777201, 1e-12);

  const RankTest large = mann_whitney(kWaveA, kWaveB);
  EXPECT_EQ(large.u, 1075);
  EXPECT_NEAR(large.p, 0.07547554019367103, 1e-12);

  // Any inflation leaves the exact distribution; 1 + epsilon shows the normal one.
  EXPECT_NEAR(mann_whitney(kFirst, kSecond, 1 + 1e-12).p, 0.1333202155896274, 1e-9);
  EXPECT_GT(mann_whitney(kWaveA, kWaveB, 4).p, large.p);
}

TEST(Statistics, MannWhitneyOfConstants) {
  const std::vector<double> fives(30, 5.0);
  const std::vector<double> sixes(30, 6.0);
  EXPECT_EQ(mann_whitney(fives, fives).p, 1);
  EXPECT_LT(mann_whitney(fives, sixes).p, 1e-9);
}

TEST(Statistics, HolmStepsDown) {
  const std::vector<double> adjusted = holm(std::vector<double>{0.01, 0.04, 0.03, 0.005, 0.6});
  const std::vector<double> expected{0.04, 0.09, 0.09, 0.025, 0.6};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-12);
  EXPECT_EQ(holm(std::vector<double>{0.7, 0.9}), (std::vector<double>{1, 1}));
}

TEST(Statistics, JainIndex) {
  EXPECT_DOUBLE_EQ(*jain_index(std::vector<double>{3, 3, 3, 3}), 1);
  EXPECT_DOUBLE_EQ(*jain_index(std::vector<double>{1, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(*jain_index(std::vector<double>{1, 2, 3}), 36.0 / 42.0);
  EXPECT_FALSE(jain_index(std::vector<double>{}));
  EXPECT_FALSE(jain_index(std::vector<double>{0, 0}));
  EXPECT_FALSE(jain_index(std::vector<double>{1, -1}));
  EXPECT_FALSE(jain_index(std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()}));
}

TEST(Statistics, TrendLikeScipy) {
  const auto found = trend(ramp());
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->slope, 0.3, 1e-12);
  EXPECT_NEAR(found->change, 0.19516263552960808, 1e-12);
  // 1.15e-07 for independent residuals; theirs are regular, and correlation may only make p larger.
  EXPECT_GE(found->p, 1.1503091116528657e-07 * 0.999);
  EXPECT_TRUE(found->is_clear);
}

TEST(Statistics, TrendInLongRunsAndNone) {
  SplitMix random(5);
  std::vector<double> drifting = autoregressive(random, 20'000, 0, 0.02);
  EXPECT_LT(std::fabs(trend(drifting)->change), 0.005);
  for (std::size_t i = 0; i < drifting.size(); ++i) drifting[i] *= 1 + 0.1 * static_cast<double>(i) / 20'000;
  EXPECT_NEAR(trend(drifting)->change, 0.095, 0.01);
  EXPECT_TRUE(trend(drifting)->is_clear);
  EXPECT_NEAR(trend(drifting)->slope * 20'000 / median(drifting), trend(drifting)->change, 0.002);
  EXPECT_FALSE(trend(std::vector<double>(50, 0.0)));
  EXPECT_EQ(trend(std::vector<double>(50, 3.0))->p, 1);
  EXPECT_NEAR(trend(drifting)->end_ratio, 1.09 / 1.01, 0.002);
}

TEST(Statistics, DriftSaysWhichEndWasSlower) {
  EXPECT_EQ(drift_text(1 / 2.1), "the first iterations took 2.1 times as long as the last");
  EXPECT_EQ(drift_text(1.6), "the last iterations took 1.6 times as long as the first");
  EXPECT_EQ(drift_text(1.06), "the last iterations took 1.06 times as long as the first");
}

TEST(Statistics, NoiseRatio) {
  EXPECT_NEAR(*noise_ratio(kSkewed), 32.512 / 12.1, 1e-12);
  EXPECT_FALSE(noise_ratio(std::vector<double>(9, 0.0)));
}

// scipy.stats.bootstrap, 99,999 percentile resamples: mean [104.215, 105.690], median [103.7, 106.2], ratio of medians
// [0.99240, 1.02788]. Ours draws other numbers, so the ends agree only as far as 10,000 resamples do.
TEST(Bootstrap, AgreesWithScipy) {
  BootstrapOptions single;
  single.block = 1;
  const auto intervals = summary_intervals(kWaveA, single);
  ASSERT_TRUE(intervals);
  EXPECT_NEAR(intervals->mean.low, 104.215, 0.05);
  EXPECT_NEAR(intervals->mean.high, 105.690, 0.05);
  EXPECT_NEAR(intervals->p50.low, 103.7, 0.11);
  EXPECT_NEAR(intervals->p50.high, 106.2, 0.11);
  const auto ratio = median_ratio_interval(kWaveB, kWaveA, single);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->low, 0.99240, 0.0015);
  EXPECT_NEAR(ratio->high, 1.02788, 0.0015);
}

TEST(Bootstrap, RankHistogramEqualsPlainResampling) {
  for (const std::size_t block : {std::size_t{1}, std::size_t{7}}) {
    BootstrapOptions options;
    options.block = block;
    options.resamples = 500;
    const auto fast = summary_intervals(kWaveA, options);
    const auto mean_slow = bootstrap_interval(kWaveA, mean, options);
    const auto median_slow = bootstrap_interval(kWaveA, median, options);
    const auto p95_slow =
        bootstrap_interval(kWaveA, [](std::span<const double> values) { return quantile(values, 0.95); }, options);
    EXPECT_NEAR(fast->mean.low, mean_slow->low, 1e-9);
    EXPECT_NEAR(fast->mean.high, mean_slow->high, 1e-9);
    EXPECT_NEAR(fast->p50.low, median_slow->low, 1e-9);
    EXPECT_NEAR(fast->p50.high, median_slow->high, 1e-9);
    EXPECT_NEAR(fast->p95->low, p95_slow->low, 1e-9);
    EXPECT_NEAR(fast->p95->high, p95_slow->high, 1e-9);
  }
}

TEST(Bootstrap, IsTheSameEverywhere) {
  SplitMix random(0);
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafU);  // the published first values of SplitMix64 for seed 0
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4U);
  const auto once = summary_intervals(kWaveA);
  const auto again = summary_intervals(kWaveA);
  EXPECT_EQ(once->mean.low, again->mean.low);
  BootstrapOptions other;
  other.seed = 2;
  EXPECT_NE(once->mean.low, summary_intervals(kWaveA, other)->mean.low);
}

TEST(Bootstrap, KnowsWhenThereIsTooLittle) {
  EXPECT_FALSE(summary_intervals(std::vector<double>{1, 2, 3, 4}));
  EXPECT_FALSE(median_ratio_interval(std::vector<double>{1, 2, 3, 4}, kWaveA));
  EXPECT_FALSE(median_ratio_interval(kWaveA, std::vector<double>(10, 0.0)));
  EXPECT_EQ(min_for_quantile(0.95), 40U);
  EXPECT_EQ(min_for_quantile(0.99), 200U);
  const auto summary = summarise(kWaveA);
  EXPECT_TRUE(summary->p95_interval);
  EXPECT_FALSE(summary->p99_interval);
  const auto constant = summarise(std::vector<double>(10, 7.0));
  EXPECT_EQ(constant->p50_interval->low, 7);
  EXPECT_EQ(constant->p50_interval->high, 7);
  EXPECT_EQ(constant->std, 0);
}

TEST(Bootstrap, SpendsLessOnLargeSamples) {
  EXPECT_EQ(resample_count(100, 10'000), 10'000);
  EXPECT_EQ(resample_count(4'000, 10'000), 1'000);
  EXPECT_EQ(resample_count(1'000'000, 10'000), 400);
  EXPECT_EQ(resample_count(10, 50), 50);
  SplitMix random(8);
  const auto many = autoregressive(random, 200'000, 0, 0.1);
  const auto intervals = summary_intervals(many);
  EXPECT_LT(intervals->p50.high / intervals->p50.low, 1.005);
  EXPECT_LE(intervals->p50.low, 1.001e6);
  EXPECT_GE(intervals->p50.high, 0.999e6);
}

TEST(Bootstrap, DetectsSerialCorrelation) {
  SplitMix random(11);
  const Dependence alone = serial_dependence(autoregressive(random, 400, 0, 0.2));
  EXPECT_LT(alone.inflation, 1.5);
  const Dependence tied = serial_dependence(autoregressive(random, 400, 0.8, 0.2));
  EXPECT_GT(tied.lag1, 0.6);
  EXPECT_GT(tied.inflation, 4);  // (1 + 0.8) / (1 - 0.8) = 9 in the limit
  EXPECT_GT(tied.block, 5U);
  EXPECT_LE(tied.captured, tied.inflation);
  // Alternation makes means steadier, not less so: hardly any widening.
  std::vector<double> alternating;
  for (int i = 0; i < 100; ++i) alternating.push_back(i % 2 == 0 ? 10 : 20 + 0.01 * i);
  EXPECT_LT(serial_dependence(alternating).inflation, 1.6);
  EXPECT_EQ(serial_dependence(std::vector<double>(100, 4.0)).block, 1U);
}

// Nominal 95 %. Fixed seeds: this is arithmetic, not timing.
TEST(Bootstrap, CoversTheMedianAlsoWhenCorrelated) {
  for (const double rho : {0.0, 0.6}) {
    SplitMix random(21);
    BootstrapOptions options;
    options.resamples = 500;
    int covered = 0;
    for (int round = 0; round < 300; ++round) {
      const auto intervals = summary_intervals(autoregressive(random, 100, rho, 0.2), options);
      covered += intervals->p50.low <= 1e6 && intervals->p50.high >= 1e6;
    }
    EXPECT_GE(covered, 270) << rho;
    EXPECT_LE(covered, 298) << rho;
  }
}

}  // namespace
}  // namespace weir
