#include <gtest/gtest.h>

#include <sstream>

#include "report/text/documents.h"
#include "support/text.h"

namespace weir {
namespace {

// As the terminal shows it.
std::string section_text(const Json& regressions) {
  TextReport report;
  report.sections = {regressions_section(regressions)};
  const std::string whole = report_text(report);
  return whole.substr(whole.find_first_not_of('\n'));  // there is no title above the section's
}

Json sample() {
  const auto entry = [](const char* key, const char* verdict, bool is_regression, const Json& ratio,
                        const char* reason) {
    return Json{{"key", key},
                {"verdict", verdict},
                {"is_regression", is_regression},
                {"ratio", ratio},
                {"interval", ratio.is_null() ? Json() : Json({ratio.get<double>() - 0.05, ratio.get<double>() + 0.05})},
                {"before_ns", {{"p50", ratio.is_null() ? Json() : Json(0.1e6)}}},
                {"after_ns", {{"p50", ratio.is_null() ? Json() : Json(0.1e6 * ratio.get<double>())}}},
                {"reason", reason}};
  };
  return {{"baseline", "main:reports/summary.json"},
          {"options", {{"latency", 0.1}, {"accuracy", 1e-3}, {"certainty", 0.99}}},
          {"verdict", "regressed"},
          {"counts", {{"failed", 1}, {"slower", 1}, {"not_comparable", 1}, {"same", 1}}},
          {"cases",
           {entry("spmv/cpu/fp32/rows=100000,columns=100000,per_row=24,and=more_and_more_words", "failed", true,
                  nullptr, "worked before, now crashed: SIGSEGV\x1b[2J"),
            entry("softmax/cpu/fp32", "slower", true, 1.153, "between 10.3 % and 20.3 % slower"),
            entry("fft/cuda/fp32", "not_comparable", false, nullptr, "differ: device (A then, B now)"),
            entry("histogram/cpu/fp32", "same", false, 1.001, "between 4.0 % faster and 4.2 % slower")}},
          {"notes", {"The environment differs: kernel (a then, b now). That may be why times do."}}};
}

TEST(BenchRegressions, the_terminal_gets_what_matters_in_80_columns) {
  const std::string text = section_text(sample());
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_TRUE(text.starts_with("Regressions\n")) << text;
  EXPECT_TRUE(has(text, "Something regressed. 1 failed, 1 slower, 1 not comparable")) << text;
  EXPECT_TRUE(has(text, "more than 10 % slower with 99 % certainty")) << text;
  EXPECT_TRUE(has(text, "+15.3 %")) << text;
  EXPECT_TRUE(has(text, "+10.3 .. +20.3 %")) << text;
  EXPECT_TRUE(has(text, "device (A then, B now)")) << text;
  EXPECT_TRUE(has(text, "The environment differs")) << text;
  EXPECT_FALSE(has(text, "histogram")) << text;
  EXPECT_FALSE(has(text, "\x1b")) << text;
}

TEST(BenchRegressions, markdown_has_every_case) {
  const std::string text = report_markdown(regressions_report(sample()));
  for (const char* part : {"# Regressions", "histogram/cpu/fp32", "softmax/cpu/fp32", "spmv", "fft/cuda/fp32",
                           "not comparable", "## How to read this"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  EXPECT_FALSE(has(text, "\x1b"));
}

TEST(BenchRegressions, no_baseline_is_said) {
  EXPECT_TRUE(has(section_text(nullptr), "there is no baseline")) << section_text(nullptr);
  EXPECT_TRUE(has(report_markdown(regressions_report(nullptr)), "there is no baseline"));
}

TEST(BenchRegressions, a_long_list_of_reasons_is_cut_but_never_a_regression) {
  Json many = sample();
  Json one = many["cases"][2];
  for (int i = 0; i < 50; ++i) {
    one["key"] = "k" + std::to_string(i);
    many["cases"].push_back(one);
  }
  one["verdict"] = "slower";
  one["is_regression"] = true;
  one["key"] = "last";
  many["cases"].push_back(one);
  const ReportSection section = regressions_section(many);
  std::string all;
  for (const std::string& remark : section.remarks) all += remark + "\n";
  EXPECT_TRUE(has(all, "last: slower")) << all;
  EXPECT_TRUE(has(all, "more in regressions.md")) << all;
  EXPECT_FALSE(has(all, "k40")) << all;
}

// With --filter most of a baseline is gone: that must not bury what was measured.
TEST(BenchRegressions, what_is_gone_takes_one_line_of_a_summary) {
  Json many = sample();
  Json one = many["cases"][2];
  one["verdict"] = "gone";
  one["reason"] = "this run does not have it";
  for (int i = 0; i < 50; ++i) {
    one["key"] = "old" + std::to_string(i);
    many["cases"].push_back(one);
  }
  const std::string text = section_text(many);
  EXPECT_TRUE(has(text, "gone: this run does not have it: old0, old1, old2, old3 and 46 more")) << text;
  EXPECT_FALSE(has(text, "old7")) << text;
  EXPECT_TRUE(has(report_markdown(regressions_report(many)), "old49"));
}

TEST(BenchRegressions, blocks_of_any_shape_are_told) {
  for (const Json& odd : {Json::object(), Json{{"cases", 3}, {"counts", "x"}, {"notes", 1}},
                          Json{{"cases", {1, nullptr, {{"interval", {"a", "b"}}}}}}}) {
    EXPECT_FALSE(section_text(odd).empty());
    EXPECT_FALSE(report_markdown(regressions_report(odd)).empty());
  }
}

}  // namespace
}  // namespace weir
