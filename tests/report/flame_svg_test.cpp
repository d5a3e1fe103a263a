#include <gtest/gtest.h>

#include "report/text/svg.h"
#include "support/text.h"

namespace weir {
namespace {

TEST(FlameSvg, each_frame_is_as_wide_as_it_was_seen_often) {
  const std::string svg = flame_svg({{"main;f;g", 3}, {"main;h", 1}}, "moe");
  EXPECT_NE(svg.find("<title>all: 4 samples, 100.00 %</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>f: 3 samples, 75.00 %</title><rect x=\"10.00\" y=\"82\" width=\"885.00\""),
            std::string::npos)
      << svg;
  EXPECT_NE(svg.find("<title>h: 1 samples, 25.00 %</title><rect x=\"895.00\""), std::string::npos) << svg;
  EXPECT_EQ(count(svg, "<g>"), 5U);
}

TEST(FlameSvg, names_cannot_leave_their_place) {
  const std::string svg = flame_svg({{"a<script>alert(1)</script>;\"&'\x1b", 1}}, "<b>");
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_EQ(svg.find('\x1b'), std::string::npos);
}

TEST(FlameSvg, what_is_too_narrow_or_too_deep_is_left_out) {
  std::vector<FoldedStack> many;
  for (int i = 0; i < 50'000; ++i) many.push_back({"main;f" + std::to_string(i), 1});
  EXPECT_LT(flame_svg(many, "many").size(), 10'000U);
  std::string deep = "main";
  for (int i = 0; i < 5000; ++i) deep += ";f";
  EXPECT_LT(count(flame_svg({{deep, 1}}, "deep"), "<g>"), 300U);
  EXPECT_NE(flame_svg({}, "none").find("0 samples"), std::string::npos);
}

}  // namespace
}  // namespace weir
