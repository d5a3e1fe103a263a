// The section of an analysis about the efficiency of operators, from documents as `weir analyze` writes them.
#include <gtest/gtest.h>

#include "report/text/analysis_sections.h"
#include "support/text.h"

namespace weir {
namespace {

Json document() {
  return Json::parse(R"({"efficiency": {"count": 3, "judged_ns": 6778002, "saved_ns": 3653000, "peaks_reason": null,
    "peaks": {"model": "H100 SXM", "source": "a data sheet", "bytes_per_s": 3.35e12,
      "matrix_flop_per_s": {"bf16": 9.895e14}, "vector_flop_per_s": {"f64": null, "f32": 6.7e13}},
    "unknown": [{"reason": "it works on lists of tensors", "operators": 1, "commands": 7, "total_ns": 2018000}],
    "top": [
      {"name": "aten::mm", "shapes": "bf16 [8944, 1024], bf16 [1024, 2816]", "calls": 48, "commands": 96,
       "total_ns": 4055251, "flop": 5.16e10, "bytes": 7.4e7, "type": "bf16", "flop_per_s": 6.105e14,
       "bytes_per_s": 8.81e11, "bound": "compute", "share": 0.617, "saved_ns": 1553000, "reason": null},
      {"name": "aten::_scaled_dot_product_flash_attention",
       "shapes": "bf16 [16, 559, 16, 64], bf16 [16, 559, 16, 64], f32 [16, 559, 16, 64]; 0., True", "calls": 24,
       "commands": 24, "total_ns": 2722751, "flop": 1e10, "bytes": 7e7, "type": "bf16", "flop_per_s": 9.05e12,
       "bytes_per_s": 6.46e11, "bound": "memory", "share": 0.193, "saved_ns": 2100000, "reason": null},
      {"name": "aten::cat", "shapes": "2 tensors of 96 elements", "calls": 7, "commands": 7, "total_ns": 2018000,
       "flop": null, "bytes": null, "type": null, "flop_per_s": null, "bytes_per_s": null, "bound": null,
       "share": null, "saved_ns": null, "reason": "it works on lists of tensors"}]}})");
}

std::string text_of(const Json& device) { return report_text({"", {}, {analysis::efficiency_section(device, 10)}}); }

TEST(AnalysisEfficiency, shows_rates_shares_and_what_is_not_known) {
  const std::string text = text_of(document());
  expect_narrow(text);
  const ReportSection section = analysis::efficiency_section(document(), 10);
  ASSERT_EQ(section.tables.size(), 1u);
  const auto& rows = section.tables[0].rows;
  ASSERT_EQ(rows.size(), 2u) << "operators without rates are summed up below";
  EXPECT_EQ(rows[0], (std::vector<std::string>{"mm bf16 8944x1024, 1024x2816", "48", "4.06 ms", "610", "881", "61.7 %",
                                               "compute", "1.55 ms"}));
  EXPECT_EQ(rows[1][0], "_scaled_dot_product_flash_attention bf16 16x559x16x64, 16x559x16x64, f32 16x559x16x64");
  EXPECT_EQ(rows[1][3], "9.05");
  EXPECT_NE(text.find("H100 SXM: 3350 GB/s, bf16 990 TFLOP/s"), std::string::npos) << text;
  EXPECT_NE(text.find("Not judged: 1 operator (2.02 ms), it works on lists of tensors."), std::string::npos) << text;
  EXPECT_EQ(analysis::efficiency_section(document(), 1).tables[0].rows.size(), 1u);
}

TEST(AnalysisEfficiency, says_why_there_are_no_shares) {
  Json device = document();
  Json& found = device["efficiency"];
  found["peaks"] = nullptr;
  found["peaks_reason"] = "the peaks of 'GPU 0' are not in the table";
  found["judged_ns"] = 0;
  found["unknown"][0]["reason"] = found["peaks_reason"];
  for (Json& each : found["top"]) each["share"] = each["bound"] = each["saved_ns"] = nullptr;
  const std::string text = text_of(device);
  EXPECT_NE(text.find("No shares of a peak: the peaks of 'GPU 0' are not in the table."), std::string::npos) << text;
  EXPECT_EQ(text.find("Not judged"), std::string::npos) << "once is enough";
  EXPECT_NE(text.find("610"), std::string::npos) << "rates need no peak";
}

}  // namespace
}  // namespace weir
