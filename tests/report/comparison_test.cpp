// The three forms of a comparison: width, escaping, nulls.
#include "report/text/comparison.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace weir {
namespace {

Comparison example() {
  MetricComparison latency;
  latency.metric = "latency";
  latency.unit = "ns";
  latency.verdict = Verdict::slower;
  latency.baseline_count = latency.test_count = 100;
  latency.baseline_median = 123.4e6;
  latency.test_median = 134.6e6;
  latency.ratio = 1.0908;
  latency.interval = Interval{1.0711, 1.1102};
  latency.p = 1e-9;
  latency.adjusted_p = 4e-9;
  MetricComparison throughput;
  throughput.metric = "throughput";
  throughput.unit = "commands/s";
  throughput.reason =
      "test: no time per iteration (samples.interval_ns), and a reason that goes on for longer than a line";
  throughput.baseline_median = 123.4e6;
  throughput.baseline_count = 100;
  PairComparison pair;
  pair.label = "tiny_kernel_stress, 128 streams, inline, round_robin, param operations 100000, param elements 256";
  pair.key = {{"workload", "tiny_kernel_stress"}, {"streams", "128"}};
  pair.verdict = Verdict::slower;
  pair.metrics = {latency, throughput};
  pair.notes = {"baseline: the last iterations took 1.06 times as long as the first (warm-up too short, or clocks?)"};
  PairComparison failed;
  failed.label = "a|b <script>, 1 stream";
  failed.verdict = Verdict::slower;
  failed.failure = "test: its output is wrong";
  TestComparison test;
  test.name = "b.json";
  test.pairs = {pair, failed};
  test.baseline_only = {{"moe, 8 streams", "a.json", "nearest differs in streams: 8 vs 16, submit: inline vs graph"}};
  test.test_only = {{"moe, 16 streams", "b.json", "nearest differs in streams: 16 vs 8"}};
  test.notes = {"device.model differs: NVIDIA A100-SXM4-80GB vs NVIDIA H200"};
  return {"a.json", {}, {test}, 1};
}

TEST(TextReport, TextFitsEightyColumns) {
  const std::string text = comparison_text(example());
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  for (const char* part : {"b.json against baseline a.json", "1.091x [1.071, 1.110]   p <0.001 slower",
                           "Only in the baseline (1):", "Only in the test (1):", "2 slower", "Holm over 1 test."})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(TextReport, MarkdownKeepsItsTable) {
  const std::string text = comparison_markdown(example());
  EXPECT_NE(text.find("a\\|b \\<script>"), std::string::npos);
  EXPECT_NE(text.find("**slower**"), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) continue;
    std::size_t bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    EXPECT_EQ(bars, 9U) << line;
  }
}

TEST(TextReport, JsonHasNullsNotZeros) {
  Comparison comparison = example();
  comparison.tests[0].pairs[0].metrics[0].tail_ratio = std::numeric_limits<double>::infinity();
  const Json json = comparison_json(comparison, true);
  EXPECT_EQ(json["schema"], "weir.comparison/2");
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_EQ(json["verdicts"]["slower"], 2);
  EXPECT_EQ(json["verdicts"]["same"], 0);
  const Json& pair = json["tests"][0]["pairs"][0];
  EXPECT_EQ(pair["key"]["streams"], "128");
  EXPECT_EQ(pair["metrics"]["latency"]["ratio"], 1.0908);
  EXPECT_EQ(pair["metrics"]["latency"]["interval"][1], 1.1102);
  EXPECT_TRUE(pair["metrics"]["latency"]["tail_ratio"].is_null());
  EXPECT_TRUE(pair["metrics"]["throughput"]["ratio"].is_null());
  EXPECT_TRUE(pair["metrics"]["throughput"]["interval"].is_null());
  EXPECT_TRUE(pair["metrics"]["throughput"]["test"]["p50"].is_null());
  EXPECT_TRUE(json["tests"][0]["pairs"][1]["metrics"].is_object());
  EXPECT_EQ(Json::parse(json.dump()), json);
}

}  // namespace
}  // namespace weir
