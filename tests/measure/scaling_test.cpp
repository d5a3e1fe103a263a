// Scaling against scipy 1.10.1's bounded least squares (tests/measure/reference/statistics_reference.py), and its
// edges.
#include "measure/scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "measure/bootstrap.h"

namespace weir {
namespace {

std::vector<ScalingPoint> sweep(const std::vector<double>& throughputs) {
  std::vector<ScalingPoint> points;
  int streams = 1;
  for (const double throughput : throughputs) {
    points.push_back({streams, throughput});
    streams *= 2;
  }
  return points;
}

const auto kPeaked = sweep({955.16, 1878.91, 3688.02, 6531.08, 9897.24, 10811.05, 8101.3});
const auto kSaturating = sweep({100, 190, 345, 590, 890, 1195, 1440});
const auto kLinear = sweep({10.1, 19.9, 40.3, 79.8, 160.4, 319.0, 641.0});

TEST(Scaling, FitsLikeScipy) {
  const auto peaked = fit_usl(kPeaked);
  ASSERT_TRUE(peaked);
  EXPECT_NEAR(peaked->gamma, 968.9654360670825, 1e-3);
  EXPECT_NEAR(peaked->alpha, 0.015085274477105826, 1e-7);
  EXPECT_NEAR(peaked->beta, 0.0014137801581801369, 1e-9);
  EXPECT_NEAR(*peaked->r_squared, 0.9999714563413562, 1e-9);
  EXPECT_NEAR(*peaked->peak_streams, 26.394192160833498, 1e-4);
  EXPECT_NEAR(*peaked->peak_throughput, 10973.229854950692, 1e-2);
  EXPECT_TRUE(peaked->is_peak_measured);

  const auto saturating = fit_usl(kSaturating);
  EXPECT_NEAR(saturating->gamma, 101.33902176034638, 1e-4);
  EXPECT_NEAR(saturating->alpha, 0.05466127867699654, 1e-7);
  EXPECT_NEAR(saturating->beta, 1.5308618125662166e-05, 1e-9);
  EXPECT_NEAR(*saturating->peak_streams, 248.4996, 0.05);
  EXPECT_FALSE(saturating->is_peak_measured);

  const auto linear = fit_usl(kLinear);
  EXPECT_NEAR(linear->gamma, 10.006940120857116, 1e-6);
  EXPECT_NEAR(linear->alpha, 0, 1e-9);
  EXPECT_NEAR(linear->beta, 0, 1e-9);
  EXPECT_NEAR(*linear->r_squared, 0.9999935276674076, 1e-9);
  EXPECT_FALSE(linear->peak_streams);
}

TEST(Scaling, RecoversWhatItWasGiven) {
  SplitMix random(4);
  for (int round = 0; round < 200; ++round) {
    const double gamma = std::pow(10, 12 * random.fraction() - 2);
    const double alpha = 0.9 * random.fraction();
    const double beta = std::pow(10, -5 + 4 * random.fraction());
    std::vector<ScalingPoint> points;
    for (const int n : {1, 2, 4, 8, 16, 32, 64})
      points.push_back({n, gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1))});
    const auto fit = fit_usl(points);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->gamma / gamma, 1, 1e-4) << alpha << ' ' << beta;
    EXPECT_NEAR(fit->alpha, alpha, 1e-3) << beta;
    EXPECT_NEAR(fit->beta / beta, 1, 0.02) << alpha << ' ' << beta;
  }
}

TEST(Scaling, SurvivesOddCurves) {
  for (const auto& throughputs : {std::vector<double>{5, 5, 5, 5}, std::vector<double>{100, 10, 1, 0.1},
                                  std::vector<double>{1, 10, 100, 1000}, std::vector<double>{1e-300, 1, 1e300, 1}}) {
    const auto fit = fit_usl(sweep(throughputs));
    ASSERT_TRUE(fit);
    EXPECT_TRUE(std::isfinite(fit->gamma));
    EXPECT_GE(fit->alpha, 0);
    EXPECT_GE(fit->beta, 0);
    if (fit->peak_streams) {
      EXPECT_GE(*fit->peak_streams, 1);
    }
  }
  EXPECT_FALSE(fit_usl(sweep({5, 5, 5, 5}))->r_squared);
}

TEST(Scaling, RowsFollowTheFirstCount) {
  // Out of order, doubled, and with points that cannot be used.
  const std::vector<ScalingPoint> points{
      {8, 300}, {2, 100}, {4, 190}, {4, 170}, {0, 50}, {16, 0}, {32, std::numeric_limits<double>::quiet_NaN()}};
  const ScalingAnalysis analysis = analyse_scaling(Scaling::divided, points);
  ASSERT_EQ(analysis.rows.size(), 3U);
  EXPECT_EQ(analysis.rows[0].streams, 2);
  EXPECT_EQ(analysis.rows[0].efficiency, 1);
  EXPECT_FALSE(analysis.rows[0].marginal);
  EXPECT_DOUBLE_EQ(analysis.rows[1].throughput, 180);
  EXPECT_DOUBLE_EQ(analysis.rows[1].efficiency, 0.9);
  EXPECT_DOUBLE_EQ(*analysis.rows[1].marginal, 0.8);
  EXPECT_DOUBLE_EQ(analysis.rows[2].speedup, 3);
  EXPECT_DOUBLE_EQ(analysis.rows[2].efficiency, 0.75);
  EXPECT_DOUBLE_EQ(analysis.rows[2].per_stream, 37.5);
  EXPECT_EQ(analysis.best_streams, 8);
  EXPECT_FALSE(analysis.usl);
  EXPECT_NE(analysis.usl_reason.find("at least 4"), std::string::npos);
  EXPECT_NE(analysis.meaning.find("strong"), std::string::npos);
}

TEST(Scaling, KneeIsWhereThePlateauBegins) {
  EXPECT_EQ(analyse_scaling(Scaling::grows, sweep({100, 190, 380, 396, 400, 398})).knee, 4);
  EXPECT_EQ(analyse_scaling(Scaling::grows, kPeaked).knee, 32);
  EXPECT_EQ(analyse_scaling(Scaling::grows, sweep({100, 100, 100})).knee, 1);
  const ScalingAnalysis rising = analyse_scaling(Scaling::requests, kLinear);
  EXPECT_FALSE(rising.knee);
  EXPECT_NE(rising.knee_reason.find("still rises at 64"), std::string::npos);
  EXPECT_FALSE(analyse_scaling(Scaling::grows, sweep({100, 200})).knee);
  EXPECT_FALSE(analyse_scaling(Scaling::grows, {}).knee_reason.empty());
}

TEST(Scaling, Names) {
  for (const Scaling scaling : {Scaling::grows, Scaling::divided, Scaling::requests})
    EXPECT_EQ(scaling_named(name_of(scaling)), scaling);
  EXPECT_FALSE(scaling_named("weak"));
}

}  // namespace
}  // namespace weir
