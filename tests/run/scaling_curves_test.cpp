#include "run/scaling_curves.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ScalingCurves, ways_of_one_family_differ_in_counts_only) {
  EXPECT_EQ(submit_family("inline"), "inline");
  EXPECT_EQ(submit_family("threads:4"), "threads");
  EXPECT_EQ(submit_family("channel:mpsc:4x2"), "channel:mpsc");
  EXPECT_EQ(submit_family("channel:mutex_deque:1"), "channel:mutex_deque");
  EXPECT_EQ(submit_family("scheduled:fifo:4"), "scheduled:fifo:4") << "each bound is a curve of its own";
}

TEST(ScalingCurves, parts_of_the_device_are_curves_of_their_own) {
  EXPECT_EQ(way_of("threads:4", 0), "threads:4");
  EXPECT_EQ(way_of("threads:4", 16), "threads:4 on 16 units");
  EXPECT_EQ(curve_of("threads:4", 16), "threads on 16 units");
  EXPECT_EQ(compute_units_asked({{"device", {{"compute_units", 18}, {"compute_units_asked", 16}}}}), 16);
  EXPECT_EQ(compute_units_asked({{"device", {{"compute_units", 18}}}}), 18);
  EXPECT_EQ(compute_units_asked({{"device", {{"compute_units", nullptr}}}}), 0);
}

TEST(ScalingCurves, points_of_a_curve_are_analysed_together_and_failed_ones_left_out) {
  const auto point = [](int streams, const char* submit, double value) {
    return Json{{"status", "complete"},
                {"submit", submit},
                {"streams", streams},
                {"device", Json::object()},
                {"metrics", {{"throughput", {{"value", value}}}}}};
  };
  Json results = {point(1, "threads:1", 10), point(2, "threads:2", 20), point(4, "threads:4", 30),
                  point(1, "inline", 10)};
  results.push_back(point(8, "threads:8", 1e9));
  results.back()["status"] = "failed";
  const Json found = scaling_of(results, "grows");
  ASSERT_EQ(found.size(), 2u);
  const Json& rows = found["threads"]["rows"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2]["streams"], 4);
  EXPECT_EQ(rows[2]["speedup"], 3.0);
  EXPECT_EQ(rows[2]["efficiency"], 0.75);
  EXPECT_EQ(found["threads"]["best_streams"], 4);
  EXPECT_EQ(found["inline"]["rows"].size(), 1u);
}

}  // namespace
}  // namespace weir
