#include <gtest/gtest.h>

#include "measure/result.h"
#include "report/text/documents.h"
#include "support/text.h"

namespace weir {
namespace {

Json sample_result() {
  Result result;
  result.workload = "tiny_kernel_stress";
  result.unit = "commands/s";
  result.scaling = "grows";
  result.submit = "inline";
  result.placement = "natural";
  result.sync_mode = "per_iteration";
  result.precision = "fp32";
  result.scale = "small";
  result.streams = 8;
  result.device = {{"name", "cpu"}, {"model", "a machine"}};
  result.latency_ns = summarise(std::vector<double>{1000, 2000, 3000, 4000, 5000, 6000});
  result.throughput = Throughput{1.5e6, Interval{1.4e6, 1.6e6}};
  result.host_ns_per_command = 12;
  result.floor_ns_per_command = 1;
  result.check = {{"status", "passed"}, {"buffers", 3}, {"worst_relative_error", 0.0}};
  result.warnings.push_back({"noisy", "latency p99 is 9.0 times p50",
                             "Close other programs and then try again with more iterations than before."});
  return to_json(result);
}

TEST(Console, ShowsTheNumbersWithUnits) {
  const std::string text = describe_result(sample_result());
  for (const char* part : {"1.50 M commands/s", "p50 3.50 us", "12.0 ns per command", "passed", "! latency p99"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  expect_narrow(text);
}

TEST(Console, AFloorAboveTheCostIsNotCalledFloor) {
  Json result = sample_result();
  EXPECT_TRUE(has(describe_result(result), "(floor 1.00 ns)")) << describe_result(result);
  result["metrics"]["host_ns_per_command"] = 741;
  result["metrics"]["floor_ns_per_command"] = 2010;
  const std::string text = describe_result(result);
  EXPECT_TRUE(has(text, "741 ns per command")) << text;
  EXPECT_TRUE(has(text, "(no more than the null device's")) << text;
  EXPECT_FALSE(has(text, "floor")) << text;
  expect_narrow(text);
}

TEST(Console, SurvivesResultsThatLackThings) {
  // Files may come from anywhere: whatever is missing or of another type is left out, never a crash.
  const Json whole = sample_result();
  for (const auto& [key, value] : whole.items()) {
    for (const Json& other : {Json(nullptr), Json(7), Json("text"), Json::array({1}), Json::object()}) {
      Json changed = whole;
      changed[key] = other;
      EXPECT_NO_THROW(describe_result(changed)) << key;
      EXPECT_NO_THROW(sweep_row(changed)) << key;
    }
  }
  EXPECT_NO_THROW(describe_result(Json::object()));
  EXPECT_NO_THROW(sweep_summary(Json::object()));
}

TEST(Console, SweepRowsFitAndNameFailures) {
  Json result = sample_result();
  expect_narrow(
      sweep_head({{"workload", "w"}, {"device", "cpu"}, {"model", "m"}, {"scale", "small"}, {"precision", "fp32"}}));
  expect_narrow(sweep_row(result));
  result["submit"] = "scheduled:earliest_deadline:2";
  expect_narrow(sweep_row(result, false, 29));
  result["status"] = "failed";
  result["failure"] = "the output is wrong";
  EXPECT_NE(sweep_row(result).find("FAILED: the output is wrong"), std::string::npos);
}

}  // namespace
}  // namespace weir
