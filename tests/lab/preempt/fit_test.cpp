#include "lab/preempt/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::preempt {
namespace {

std::vector<Length> line(double constant_ns, double per_block, const std::vector<double>& noise = {}) {
  std::vector<Length> lengths;
  for (const double block : {1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7}) {
    const double factor = noise.empty() ? 1 : noise[lengths.size() % noise.size()];
    lengths.push_back({block, (constant_ns + per_block * block) * factor});
  }
  return lengths;
}

TEST(PreemptFit, finds_the_line_that_made_the_points) {
  for (const auto& [constant, slope] : std::vector<std::pair<double, double>>{
           {12e3, 0.98}, {5e3, 4.0}, {2e6, 1.0}, {15e3, 0.01}, {1, 0.5}, {20e3, 256}}) {
    const auto fit = fit_latency(line(constant, slope));
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->per_block, slope, 0.01 * slope) << constant;
    EXPECT_LE(fit->per_block_interval.low, slope * 1.001);
    EXPECT_GE(fit->per_block_interval.high, slope * 0.999);
    if (constant > 10) {
      EXPECT_NEAR(fit->constant_ns, constant, 0.01 * constant) << slope;
    }
  }
}

TEST(PreemptFit, of_what_does_not_grow_is_flat) {
  const auto fit = fit_latency(line(25e3, 0, {1.05, 0.95, 1.02}));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->constant_ns, 25e3, 2e3);
  EXPECT_LT(fit->per_block * 1e7, 2e3);
  EXPECT_EQ(what_follows(*fit, std::nullopt), Follows::constant);
}

TEST(PreemptFit, of_what_starts_at_nothing_has_no_constant) {
  const auto fit = fit_latency(line(0, 2));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->per_block, 2, 0.01);
  EXPECT_LT(fit->constant_ns, 10);
}

TEST(PreemptFit, interval_grows_with_how_far_points_are_off) {
  const auto clean = fit_latency(line(12e3, 1, {1.01, 0.99})), noisy = fit_latency(line(12e3, 1, {1.4, 0.7}));
  ASSERT_TRUE(clean && noisy);
  EXPECT_LT(clean->per_block_interval.high - clean->per_block_interval.low, 0.1);
  EXPECT_GT(noisy->per_block_interval.high - noisy->per_block_interval.low, 0.4);
  EXPECT_GE(noisy->per_block_interval.high, 1);
  EXPECT_LE(noisy->per_block_interval.low, 1);
}

TEST(PreemptFit, one_wild_decade_does_not_rule_the_others) {
  // Least squares of the values would see the longest block only.
  std::vector<Length> lengths = line(12e3, 1);
  lengths.back().latency_ns *= 1.5;
  EXPECT_NEAR(fit_latency(lengths)->constant_ns, 12e3, 2e3);
}

TEST(PreemptFit, needs_three_lengths_above_nothing) {
  EXPECT_FALSE(fit_latency({}));
  EXPECT_FALSE(fit_latency(std::vector<Length>{{1e4, 1e4}, {1e5, 1e5}, {1e5, 2e5}}));
  EXPECT_FALSE(fit_latency(std::vector<Length>{{1e4, 1e4}, {1e5, 0}, {1e6, 2e5}}));
  EXPECT_FALSE(fit_latency(std::vector<Length>{{1e4, 1e4}, {1e5, std::nan("")}, {1e6, 2e5}}));
  EXPECT_TRUE(fit_latency(std::vector<Length>{{1e4, 1e4}, {1e5, 1e5}, {1e6, 2e5}}));
}

TEST(PreemptFollows, tells_blocks_from_kernels) {
  const auto follows = [](double per_block, int waves, std::optional<double> growth = {}) {
    Fit fit = *fit_latency(line(12e3, per_block, {1.01, 0.99}));
    fit.waves = waves;
    return what_follows(fit, growth);
  };
  EXPECT_EQ(follows(0.98, 4), Follows::block);
  EXPECT_EQ(follows(0.3, 4), Follows::block);
  EXPECT_EQ(follows(2, 64), Follows::blocks);
  EXPECT_EQ(follows(4, 4), Follows::kernels);
  EXPECT_EQ(follows(8, 4), Follows::kernels);
  EXPECT_EQ(follows(4, 64), Follows::blocks);
  EXPECT_EQ(follows(4, 0), Follows::blocks);  // a persistent kernel has no end
  EXPECT_EQ(follows(1, 1), Follows::block);   // one wave: the same thing
  // What more waves did decides where the slope alone could mean both.
  EXPECT_EQ(follows(4, 4, 0.02), Follows::blocks);
  EXPECT_EQ(follows(1, 1, 0.95), Follows::kernels);
  EXPECT_EQ(follows(0, 4), Follows::constant);
}

TEST(PreemptFollows, one_block_is_meant_where_the_line_allows_it) {
  Fit fit = *fit_latency(line(12e3, 1.7, {1.3, 0.75}));
  fit.waves = 64;
  ASSERT_LT(fit.per_block_interval.low, 1.5);
  EXPECT_EQ(what_follows(fit, std::nullopt), Follows::block);
}

TEST(PreemptFollows, does_not_guess_from_a_slope_that_may_be_nothing) {
  Fit fit;
  fit.constant_ns = 1e4;
  fit.longest_ns = 1e7;
  fit.per_block = 1;
  fit.per_block_interval = {0, 9};
  EXPECT_EQ(what_follows(fit, std::nullopt), Follows::unknown);
  fit.per_block = 0;
  EXPECT_EQ(what_follows(fit, std::nullopt), Follows::unknown);
}

}  // namespace
}  // namespace weir::preempt
