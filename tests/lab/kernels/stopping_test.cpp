#include "lab/kernels/stopping.h"

#include <gtest/gtest.h>

#include "lab/kernels/outliers.h"
#include "lab/kernels/warmup.h"
#include "measure/bootstrap.h"

namespace weir::testing {
namespace {

using bench::EntropyTrail;
using bench::Stop;
using bench::Stopping;

std::size_t count_until(Stopping& stopping, const std::function<double(std::size_t)>& sample, std::string& by) {
  std::vector<double> samples;
  for (std::size_t i = 0; i < 100'000; ++i) {
    samples.push_back(sample(i));
    by = stopping.enough(samples);
    if (!by.empty()) return samples.size();
  }
  return 0;
}

TEST(BenchEntropy, is_that_of_the_frequencies) {
  EntropyTrail trail(1);
  for (const double value : {1.0, 2.0, 3.0, 4.0}) trail.add(value);
  EXPECT_NEAR(trail.bits()[0], 0, 1e-12);
  EXPECT_NEAR(trail.bits()[1], 1, 1e-12);
  EXPECT_NEAR(trail.bits()[3], 2, 1e-12);
  for (const double value : {1.0, 2.0, 3.0, 4.0}) trail.add(value);
  EXPECT_NEAR(trail.bits()[7], 2, 1e-12);
}

TEST(BenchEntropy, values_that_keep_changing_are_not_level_and_repeated_ones_are) {
  EntropyTrail growing(1), repeated(1);
  for (int i = 0; i < 200; ++i) {
    growing.add(i);
    repeated.add(i % 4);
  }
  EXPECT_FALSE(growing.is_level());
  EXPECT_TRUE(repeated.is_level());
}

TEST(BenchStopping, entropy_ends_sooner_for_samples_that_repeat) {
  const bench::MethodOptions options{.iterations = 20, .stop = Stop::entropy, .most_iterations = 2000};
  std::string by;
  Stopping same(options, 0);
  EXPECT_EQ(count_until(same, [](std::size_t) { return 1000.0; }, by), 20u);
  EXPECT_EQ(by, "entropy");
  Stopping noisy(options, 0);
  const std::size_t count =
      count_until(noisy, [](std::size_t i) { return 1000 * (1 + 0.05 * SplitMix(i).fraction()); }, by);
  EXPECT_EQ(by, "entropy");
  EXPECT_GT(count, 40u);
  Stopping drifting(options, 0);
  EXPECT_EQ(count_until(drifting, [](std::size_t i) { return 1000.0 + 20 * static_cast<double>(i); }, by), 2000u);
  EXPECT_EQ(by, "most_iterations");
}

TEST(BenchStopping, iterations_are_exact_even_beyond_the_most) {
  Stopping stopping({.iterations = 30, .most_iterations = 10}, 0);
  std::string by;
  EXPECT_EQ(count_until(stopping, [](std::size_t i) { return static_cast<double>(i); }, by), 30u);
  EXPECT_EQ(by, "iterations");
}

TEST(BenchWarmUp, windows_agree_within_two_per_cent_or_their_scatter) {
  const auto window = [](double around, double width) {
    std::vector<double> values;
    for (std::size_t i = 0; i < 20; ++i) values.push_back(around * (1 + width * (SplitMix(i).fraction() - 0.5)));
    return values;
  };
  const auto settled = [&](double a, double b, double c, double width) {
    const std::vector<std::vector<double>> windows{window(a, width), window(b, width), window(c, width)};
    return bench::is_settled(windows);
  };
  EXPECT_TRUE(settled(100, 101, 100.5, 0.001));
  EXPECT_FALSE(settled(104, 102, 100, 0.001));
  EXPECT_TRUE(settled(103, 101, 100, 0.4));
  EXPECT_FALSE(settled(160, 130, 100, 0.4));
  EXPECT_FALSE(bench::is_settled(std::vector<std::vector<double>>{window(100, 0), window(100, 0)}));
}

TEST(BenchOutliers, are_classified_by_tukeys_fences) {
  // Quartiles 3 and 7 of 1..9: fences at -3, 13 and -9, 19.
  std::vector<double> samples{1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(bench::classify_outliers(samples)->count(), 0u);
  std::vector<double> many;
  for (int i = 0; i < 100; ++i) many.insert(many.end(), samples.begin(), samples.end());
  for (const double far : {-100.0, -5.0, 14.0, 15.0, 20.0, 50.0, 1000.0}) many.push_back(far);
  const auto outliers = bench::classify_outliers(many);
  EXPECT_EQ(outliers->low_severe, 1u);
  EXPECT_EQ(outliers->low_mild, 1u);
  EXPECT_EQ(outliers->high_mild, 2u);
  EXPECT_EQ(outliers->high_severe, 3u);
  EXPECT_FALSE(bench::classify_outliers(std::vector<double>{1, 2, 3, 4}));
  // Most samples are equal, and one is a step of the clock away.
  EXPECT_EQ(bench::classify_outliers(std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1.001})->count(), 0u);
  EXPECT_EQ(bench::classify_outliers(std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1.01})->high_severe, 1u);
}

}  // namespace
}  // namespace weir::testing
