// Two modes are found where there are two, and not in what one value describes. Synthetic samples with fixed seeds.
#include "measure/modes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "measure/bootstrap.h"
#include "support/gauss.h"

namespace weir {
namespace {

// `share` of the samples at `high`, the others at `low`, each with so much noise.
std::vector<double> mixture(SplitMix& random, int count, double low, double high, double share, double sigma) {
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) samples.push_back((i < share * count ? high : low) * std::exp(sigma * gauss(random)));
  return samples;
}

TEST(Modes, FindsBothAndTheirShares) {
  SplitMix random(1);
  for (const double share : {0.5, 0.3, 0.15, 0.85}) {
    const auto modes = two_modes(mixture(random, 200, 17e6, 50e6, share, 0.08));
    ASSERT_TRUE(modes) << share;
    EXPECT_NEAR(modes->low.value, 17e6, 1e6);
    EXPECT_NEAR(modes->high.value, 50e6, 3e6);
    EXPECT_NEAR(modes->high.share, share, 0.011);
    EXPECT_DOUBLE_EQ(modes->low.share + modes->high.share, 1);
  }
}

TEST(Modes, FindsThemInAlmostAllRuns) {
  SplitMix random(2);
  int found = 0;
  for (int run = 0; run < 300; ++run) found += two_modes(mixture(random, 50, 10, 20, 0.4, 0.08)).has_value() ? 1 : 0;
  EXPECT_GE(found, 285);
}

TEST(Modes, OneModeIsOne) {
  for (const int count : {20, 50, 200, 1000}) {
    SplitMix random(static_cast<std::uint64_t>(count));
    int found = 0;
    for (int run = 0; run < 500; ++run) {
      std::vector<double> samples;
      for (int i = 0; i < count; ++i) {
        const double noise = run % 3 == 0   ? 0.3 * gauss(random)                       // bell
                             : run % 3 == 1 ? 0.4 * random.fraction()                   // flat
                                            : -0.25 * std::log(1 - random.fraction());  // a tail to one side
        samples.push_back(100 * std::exp(noise));
      }
      found += two_modes(samples).has_value() ? 1 : 0;
    }
    EXPECT_LE(found, 10) << count << " samples";
  }
}

// Five processes, each with its own level: 20 % from process to process, 2 % within. Few levels look like two now and
// then; that must stay rare.
TEST(Modes, LevelsOfProcessesAreNoModes) {
  SplitMix random(3);
  int found = 0;
  for (int run = 0; run < 500; ++run) {
    std::vector<double> samples;
    for (int process = 0; process < 5; ++process) {
      const double level = 100 * std::exp(0.2 * gauss(random));
      for (int i = 0; i < 10; ++i) samples.push_back(level * std::exp(0.02 * gauss(random)));
    }
    found += two_modes(samples).has_value() ? 1 : 0;
  }
  EXPECT_LE(found, 25);
}

TEST(Modes, OutliersAreNoMode) {
  SplitMix random(4);
  int found = 0;
  for (int run = 0; run < 300; ++run) found += two_modes(mixture(random, 100, 10, 50, 0.1, 0.05)).has_value() ? 1 : 0;
  EXPECT_EQ(found, 0);
  // Nor do they hide two modes.
  std::vector<double> samples = mixture(random, 100, 10, 30, 0.5, 0.05);
  for (const double wild : {3000.0, 2500.0, 0.001}) samples.push_back(wild);
  const auto modes = two_modes(samples);
  ASSERT_TRUE(modes);
  EXPECT_NEAR(modes->low.value, 10, 0.5);
  EXPECT_NEAR(modes->high.value, 30, 1.5);
}

TEST(Modes, NothingToSay) {
  EXPECT_FALSE(two_modes({}));
  EXPECT_FALSE(two_modes(std::vector<double>(19, 1.0)));
  EXPECT_FALSE(two_modes(std::vector<double>(100, 1.0)));
  std::vector<double> few(10, 1.0);
  few.resize(19, 3.0);
  EXPECT_FALSE(two_modes(few));
  few.push_back(3.0);
  EXPECT_TRUE(two_modes(few));
  for (const double bad :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    std::vector<double> samples(20, 1.0);
    samples.push_back(bad);
    EXPECT_FALSE(two_modes(samples)) << bad;
  }
}

}  // namespace
}  // namespace weir
