#include "lab/preempt/published.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace weir::preempt {
namespace {

TEST(PreemptPublished, curves_say_where_they_come_from) {
  const Published& all = published();
  EXPECT_EQ(all.licence, "Apache-2.0");
  EXPECT_NE(all.source.find("XSched"), std::string_view::npos);
  EXPECT_EQ(all.device, "NVIDIA GV100");
  ASSERT_EQ(all.curves.size(), 3U);
}

TEST(PreemptPublished, quantiles_are_in_order_and_lengths_too) {
  for (const PublishedCurve& curve : published().curves) {
    double before = 0;
    for (const PublishedPoint& point : curve.points) {
      EXPECT_GT(point.kernel_us, before);
      before = point.kernel_us;
      EXPECT_LE(point.p50_us, point.p90_us) << curve.level << point.kernel_us;
      EXPECT_LE(point.p90_us, point.p99_us) << curve.level << point.kernel_us;
    }
  }
}

// kernel_time avg p50 p90 p99
// 100 740.970 795.906 1039.183 1053.165
TEST(PreemptPublished, values_are_those_of_the_files) {
  const char* const folder = std::getenv("WEIR_REAL_DATA");
  if (folder == nullptr) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
  int level = 0;
  for (const PublishedCurve& curve : published().curves) {
    const auto path = std::filesystem::path(folder) / "preemption" / ("level" + std::to_string(++level) + ".dat");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    std::ifstream file(path);
    std::string heading;
    std::getline(file, heading);
    std::size_t row = 0;
    for (PublishedPoint read; file >> read.kernel_us >> read.mean_us >> read.p50_us >> read.p90_us >> read.p99_us;
         ++row) {
      ASSERT_LT(row, curve.points.size()) << path;
      const PublishedPoint& ours = curve.points[row];
      EXPECT_EQ(ours.kernel_us, read.kernel_us) << path << row;
      EXPECT_EQ(ours.mean_us, read.mean_us) << path << row;
      EXPECT_EQ(ours.p50_us, read.p50_us) << path << row;
      EXPECT_EQ(ours.p90_us, read.p90_us) << path << row;
      EXPECT_EQ(ours.p99_us, read.p99_us) << path << row;
    }
    EXPECT_EQ(row, curve.points.size()) << path;
  }
}

}  // namespace
}  // namespace weir::preempt
