#include <gtest/gtest.h>

#include <algorithm>

#include "lab/preempt/document.h"
#include "lab/preempt/synthetic.h"
#include "report/text/documents.h"
#include "report/text/svg.h"
#include "support/text.h"

namespace weir {
namespace {

Json document_of(preempt::Findings findings, const std::string& model = "some model") {
  preempt::Circumstances circumstances;
  circumstances.device = {{"name", "cpu"}, {"model", model}};
  return preempt_document(findings, circumstances);
}

TEST(PreemptReport, stays_within_80_columns_and_shows_every_mechanism) {
  const std::string text = report_text(preempt_report(document_of(preempt::testing::usual_findings()), false));
  expect_narrow(text);
  for (const char* word : {"none", "priority", "cooperative_flag", "launch_gate", "nothing can be held back", "p99.9",
                           "Behind kernels of 4 waves, blocks of 10.0 ms"})
    EXPECT_TRUE(has(text, word)) << word << "\n" << text;
}

TEST(PreemptReport, begins_with_what_went_wrong) {
  std::vector<preempt::Curve> curves = {preempt::testing::curve_of(preempt::testing::kFlag, 1, 10'000)};
  curves[0].points[0].observation.repeated_blocks = 2;
  preempt::Findings findings =
      conclude(preempt::testing::plan_of(preempt::testing::lengths()), preempt::testing::quiet_alone(), {}, curves);
  findings.is_complete = false;
  const std::string text = report_text(preempt_report(document_of(findings), false));
  const auto second = text.find('\n') + 1;
  EXPECT_EQ(text.substr(second, 9), "  FAILED:") << text;
  EXPECT_TRUE(has(text, "Ended early")) << text;
  EXPECT_TRUE(has(report_markdown(preempt_report(document_of(findings), true)), "FAILED"));
}

TEST(PreemptReport, says_why_a_quantile_is_missing) {
  EXPECT_TRUE(
      has(report_text(preempt_report(document_of(preempt::testing::usual_findings()), false)), "p99.9 needs 1000"));
}

TEST(PreemptReport, names_what_was_overloaded_beside_its_figures) {
  preempt::Findings findings = preempt::testing::usual_findings();
  EXPECT_FALSE(has(report_text(preempt_report(document_of(findings), false)), "Requests came faster than they passed"));
  findings.curves[1].points[0].is_overloaded = true;
  EXPECT_TRUE(has(report_markdown(preempt_report(document_of(findings), true)), "how long it was observed: priority."));
}

TEST(PreemptReport, markdown_has_the_published_figures) {
  const std::string text = report_markdown(preempt_report(document_of(preempt::testing::usual_findings()), true));
  EXPECT_TRUE(has(text, "| Lv1 | 100 us | 741 us |")) << text;
  EXPECT_TRUE(has(text, "Apache-2.0")) << text;
}

TEST(PreemptReport, takes_nothing_in_a_document_for_granted) {
  for (const char* text : {"{}", "[]", "null", R"({"mechanisms": 3, "plan": {"victims": [7]}, "failures": {}})",
                           R"({"mechanisms": [{"points": [{"victim": 1}, 2]}], "plan": {"victims": [1]}})"}) {
    const Json document = Json::parse(text);
    EXPECT_FALSE(report_text(preempt_report(document, false)).empty());
    EXPECT_FALSE(report_markdown(preempt_report(document, true)).empty());
    EXPECT_TRUE(preempt_svg(document).starts_with("<svg"));
  }
}

// Counts tags as an XML reader would; enough for a file that we write ourselves.
void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    EXPECT_EQ(std::count(tag.begin(), tag.end(), '"') % 2, 0) << tag;
    EXPECT_EQ(tag.find('<'), std::string::npos) << tag;
    if (tag.starts_with('/')) {
      ASSERT_FALSE(open.empty()) << tag;
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(PreemptSvg, is_well_formed_whatever_names_say) {
  const preempt::Mechanism hostile{"a\"<b>&\x1b[31m\xff", "Lv1", "", nullptr, nullptr, nullptr};
  const std::vector<preempt::Curve> curves = {preempt::testing::curve_of(hostile, 1, 10'000)};
  const auto findings =
      conclude(preempt::testing::plan_of(preempt::testing::lengths()), preempt::testing::quiet_alone(), {}, curves);
  const std::string svg = preempt_svg(document_of(findings, "<script>alert(1)</script>"));
  expect_well_formed(svg);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_TRUE(has(svg, "a&quot;&lt;b&gt;&amp;?[31m?"));
  EXPECT_TRUE(std::all_of(svg.begin(), svg.end(), [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7f); }));
}

TEST(PreemptSvg, has_a_curve_per_mechanism_a_band_and_the_published_ones_dashed) {
  const std::string svg = preempt_svg(document_of(preempt::testing::usual_findings()));
  expect_well_formed(svg);
  for (const char* part : {">none</text>", ">priority</text>", ">cooperative_flag</text>", "alone: p50 ",
                           ">XSched Lv3</text>", "stroke-dasharray", "prefers-color-scheme:dark"})
    EXPECT_TRUE(has(svg, part)) << part;
  EXPECT_FALSE(has(svg, ">launch_gate</text>"));  // it has no points
  EXPECT_FALSE(has(svg, "nan"));
}

TEST(PreemptSvg, places_points_on_logarithmic_axes) {
  // Blocks of 10 us to 10 ms: 3 decades on 346 px, beginning at 20 + 62.
  const std::string svg = preempt_svg(document_of(preempt::testing::usual_findings()));
  for (const char* at : {"cx=\"82.0\"", "cx=\"197.3\"", "cx=\"312.7\"", "cx=\"428.0\""})
    EXPECT_TRUE(has(svg, at)) << at;
}

}  // namespace
}  // namespace weir
