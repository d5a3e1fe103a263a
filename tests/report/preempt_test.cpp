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

// Findings whose points have this many requests, except for `more` on the first victim.
preempt::Findings few_findings(int requests, int more = 0) {
  using namespace preempt::testing;
  std::vector<preempt::Curve> curves = {curve_of(kNone, 8, 10'000), curve_of(kPriority, 1, 10'000)};
  for (preempt::Curve& curve : curves)
    for (preempt::Point& point : curve.points)
      point = waiting(point.victim, curve.mechanism == &kNone ? 8 : 1, 10'000, requests);
  if (more > 0) curves[0].points[0] = waiting(curves[0].points[0].victim, 8, 10'000, more);
  return conclude(plan_of(lengths()), quiet_alone(), undisturbed(lengths()), curves);
}

TEST(PreemptReport, shows_no_p99_of_few_requests_beside_one_of_many) {
  const TextReport report = preempt_report(document_of(few_findings(200, 400)), false);
  std::size_t tables = 0;
  for (const ReportSection& section : report.sections)
    for (const ReportTable& table : section.tables) {
      if (table.columns.size() < 6) continue;  // those without p99
      ++tables;
      ASSERT_EQ(table.rows.size(), 2U);
      EXPECT_EQ(table.columns[3].heading, "p99");
      EXPECT_NE(table.rows[0][3], "-");
      EXPECT_NE(table.rows[1][2], "-");
      for (const std::size_t column : {3U, 4U, 5U}) EXPECT_EQ(table.rows[1][column], "-") << column;
    }
  EXPECT_EQ(tables, 2U) << "to start and to end, for the first victim";
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

TEST(PreemptSvg, shows_the_tail_that_the_points_have_requests_for) {
  const std::string many = preempt_svg(document_of(preempt::testing::usual_findings()));
  EXPECT_TRUE(has(many, "thin: p99, band: the same command alone, p50 to p99."));
  const std::string fewer = preempt_svg(document_of(few_findings(200, 400)));
  expect_well_formed(fewer);
  EXPECT_TRUE(has(fewer, "thin: p90, band: the same command alone, p50 to p90."));
  EXPECT_TRUE(has(fewer, ", p90 "));
  EXPECT_FALSE(has(fewer, "p99"));
  const std::string few = preempt_svg(document_of(few_findings(50)));
  expect_well_formed(few);
  EXPECT_TRUE(has(few, "Thick: p50. Dashed"));
  for (const char* word : {"p90", "p99", "thin", "band", "alone"}) EXPECT_FALSE(has(few, word)) << word;
  EXPECT_TRUE(has(few, ">XSched Lv3</text>"));
}

TEST(PreemptSvg, places_points_on_logarithmic_axes) {
  // Blocks of 10 us to 10 ms: 3 decades on 346 px, beginning at 20 + 62.
  const std::string svg = preempt_svg(document_of(preempt::testing::usual_findings()));
  for (const char* at : {"cx=\"82.0\"", "cx=\"197.3\"", "cx=\"312.7\"", "cx=\"428.0\""})
    EXPECT_TRUE(has(svg, at)) << at;
}

}  // namespace
}  // namespace weir
