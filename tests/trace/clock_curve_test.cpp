#include "trace/clock_curve.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr std::int64_t kNow = 1'700'000'000'000'000'001;  // doubles are 256 apart here

TEST(ClockCurve, IsExactSince1970) {
  std::vector<ClockPair> pairs;
  for (std::int64_t i = 0; i < 10; ++i) pairs.push_back({1'000'007 * i, kNow + 1'000'007 * i});
  const ClockCurve curve(pairs);
  EXPECT_EQ(curve.distance_ns(kNow + 5), kNow);
  EXPECT_EQ(curve.error_ns(), 0);
  EXPECT_FALSE(curve.drift_ppm());
}

TEST(ClockCurve, FollowsAClockThatChangesItsSpeed) {
  const auto shown = [](std::int64_t ns) {  // 100 ppm fast, then 40 ppm slow
    return ns + kNow + (ns < 1'000'000'000 ? ns / 10'000 : 100'000 - (ns - 1'000'000'000) / 25'000);
  };
  std::vector<ClockPair> pairs;
  for (std::int64_t i = 0; i < 400; ++i) {
    const std::int64_t ns = 5'000'003 * i;
    pairs.push_back({ns, shown(ns) + (i * 7919 % 11 - 5) * 100});
  }
  pairs[70].theirs_ns += 3'000'000;  // an outlier moves nothing
  const ClockCurve curve(pairs);
  EXPECT_TRUE(curve.is_drifting());
  EXPECT_NEAR(*curve.drift_ppm(), 30, 1);
  EXPECT_LT(curve.error_ns(), 1'000);
  for (std::int64_t ns = 0; ns < 2'000'000'000; ns += 10'000'000)
    EXPECT_NEAR(static_cast<double>(curve.distance_ns(shown(ns)) - (shown(ns) - ns)), 0, 1'500) << ns;
}

TEST(ClockCurve, SaysHowFarOffAClockIsThatWasSet) {
  std::vector<ClockPair> pairs;
  for (std::int64_t i = 0; i < 100; ++i) pairs.push_back({5'000'003 * i, 5'000'003 * i + (i < 60 ? 0 : 40'000'000)});
  const ClockCurve curve(pairs);
  EXPECT_EQ(curve.distance_ns(0), 0);
  EXPECT_EQ(curve.error_ns(), 40'000'000);
}

TEST(ClockCurve, OfNoPairsIsZero) { EXPECT_EQ(ClockCurve().distance_ns(kNow), 0); }

}  // namespace
}  // namespace weir
