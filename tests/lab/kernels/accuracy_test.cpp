#include "lab/kernels/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::testing {
namespace {

using bench::Accuracy;
using bench::judge_accuracy;
using package::Checked;
using package::CheckedOutput;

Checked one(std::vector<double> actual, std::vector<double> expected, bool is_whole = false) {
  return {
      .outputs = {{.name = "y", .actual = std::move(actual), .expected = std::move(expected), .is_whole = is_whole}},
      .reason = {},
      .faults = {}};
}

TEST(BenchAccuracy, has_the_errors_of_the_formulas) {
  // Errors 0.3, 0, 0.4, 0; rms of the reference is sqrt((9 + 16 + 0 + 0) / 4) = 2.5.
  const Accuracy accuracy = judge_accuracy(one({3.3, 4, 0.4, 0}, {3, 4, 0, 0}), Precision::fp32, {});
  EXPECT_NEAR(accuracy.block["rmse"].get<double>(), 0.25, 1e-12);
  EXPECT_NEAR(accuracy.block["max_error"].get<double>(), 0.4, 1e-12);
  // 0.3 / max(3, 2.5) = 0.1; 0.4 / max(0, 2.5) = 0.16.
  EXPECT_NEAR(accuracy.block["relative_error"].get<double>(), 0.16, 1e-12);
  EXPECT_FALSE(accuracy.is_accurate);
}

TEST(BenchAccuracy, default_tolerances_follow_the_precision) {
  const double limits[] = {1e-10, 1e-4, 1e-2, 5e-2, 1e-2, 0.125, 0.25};
  for (const Precision precision : package::kPrecisions) {
    const double limit = limits[static_cast<int>(precision)];
    EXPECT_EQ(facts_of(precision).tolerance, limit);
    EXPECT_TRUE(judge_accuracy(one({1 + 0.9 * limit}, {1}), precision, {}).is_accurate);
    EXPECT_FALSE(judge_accuracy(one({1 + 1.1 * limit}, {1}), precision, {}).is_accurate);
  }
}

TEST(BenchAccuracy, errors_that_a_kernel_reports_are_held_against_limits) {
  Checked checked;
  checked.reason = "no output is shown";
  checked.reported = package::ReportedErrors{.rmse = 0.01, .max_error = 0.5, .relative_error = {}};
  const Accuracy found = judge_accuracy(checked, Precision::fp32, {});
  EXPECT_TRUE(found.is_accurate) << "no limit of the default is for rmse";
  EXPECT_EQ(found.block["rmse"], 0.01);
  EXPECT_EQ(found.block["max_error"], 0.5);
  EXPECT_TRUE(found.block["relative_error"].is_null());
  EXPECT_EQ(found.block["is_within"], true);
  EXPECT_FALSE(judge_accuracy(checked, Precision::fp32, {.rmse = 1e-3, .relative_error = {}}).is_accurate);
  checked.reported->relative_error = 1;
  EXPECT_FALSE(judge_accuracy(checked, Precision::fp32, {}).is_accurate);
  checked.reported = package::ReportedErrors{.rmse = HUGE_VAL, .max_error = {}, .relative_error = {}};
  EXPECT_FALSE(judge_accuracy(checked, Precision::fp32, {}).is_accurate) << "not a number";
}

TEST(BenchAccuracy, a_given_tolerance_replaces_the_default) {
  const Checked checked = one({1.05, 1}, {1, 1});
  EXPECT_FALSE(judge_accuracy(checked, Precision::fp32, {}).is_accurate);
  EXPECT_TRUE(judge_accuracy(checked, Precision::fp32, {.rmse = {}, .relative_error = 0.1}).is_accurate);
  EXPECT_TRUE(judge_accuracy(checked, Precision::fp32, {.rmse = 0.1, .relative_error = {}}).is_accurate);
  const Accuracy tight = judge_accuracy(checked, Precision::fp32, {.rmse = 1e-3, .relative_error = 0.1});
  EXPECT_FALSE(tight.is_accurate);
  EXPECT_NE(tight.inaccuracy.find("rmse"), std::string::npos);
  EXPECT_FALSE(tight.block["tolerance"]["is_default"].get<bool>());
}

TEST(BenchAccuracy, nan_and_infinity_are_wrong_and_counted) {
  const Accuracy accuracy = judge_accuracy(one({NAN, 1, INFINITY, 2}, {1, 1, 1, 2}), Precision::fp32, {});
  EXPECT_FALSE(accuracy.is_accurate);
  EXPECT_NE(accuracy.inaccuracy.find("2 of 4"), std::string::npos) << accuracy.inaccuracy;
  EXPECT_TRUE(accuracy.block["rmse"].is_null());
  EXPECT_TRUE(accuracy.block["relative_error"].is_null());
  EXPECT_EQ(accuracy.block["outputs"][0]["not_finite"], 2);
  EXPECT_EQ(accuracy.block["is_within"], false);
}

TEST(BenchAccuracy, an_infinity_that_is_meant_is_right_and_a_nan_reference_is_not) {
  EXPECT_TRUE(judge_accuracy(one({INFINITY, 1}, {INFINITY, 1}), Precision::fp32, {}).is_accurate);
  EXPECT_FALSE(judge_accuracy(one({-INFINITY, 1}, {INFINITY, 1}), Precision::fp32, {}).is_accurate);
  const Accuracy accuracy = judge_accuracy(one({NAN, 1}, {NAN, 1}), Precision::fp32, {});
  EXPECT_FALSE(accuracy.is_accurate);
  EXPECT_NE(accuracy.inaccuracy.find("reference itself"), std::string::npos);
}

TEST(BenchAccuracy, whole_numbers_must_be_equal) {
  EXPECT_TRUE(judge_accuracy(one({5, 1e9}, {5, 1e9}, true), Precision::fp32, {}).is_accurate);
  const Accuracy accuracy =
      judge_accuracy(one({5, 1e9 + 1}, {5, 1e9}, true), Precision::fp32, {.rmse = 100, .relative_error = 1});
  EXPECT_FALSE(accuracy.is_accurate);
  EXPECT_EQ(accuracy.block["outputs"][0]["not_equal"], 1);
}

TEST(BenchAccuracy, a_reference_of_zeros_is_judged_by_the_error_itself) {
  EXPECT_TRUE(judge_accuracy(one({1e-9, 0}, {0, 0}), Precision::fp32, {}).is_accurate);
  EXPECT_FALSE(judge_accuracy(one({1e-3, 0}, {0, 0}), Precision::fp32, {}).is_accurate);
}

TEST(BenchAccuracy, huge_values_do_not_overflow) {
  const Accuracy accuracy = judge_accuracy(one({1e300, 2e300}, {1e300, 2e300 * (1 + 1e-6)}), Precision::fp32, {});
  EXPECT_TRUE(accuracy.is_accurate);
  EXPECT_GT(accuracy.block["rmse"].get<double>(), 1e293);
}

TEST(BenchAccuracy, no_reference_is_no_verdict) {
  const Accuracy accuracy =
      judge_accuracy({.outputs = {}, .reason = "the kernel has no reference", .faults = {}}, Precision::fp32, {});
  EXPECT_TRUE(accuracy.is_accurate);
  EXPECT_TRUE(accuracy.block["is_within"].is_null());
  EXPECT_TRUE(accuracy.block["rmse"].is_null());
  EXPECT_EQ(accuracy.block["reason"], "the kernel has no reference");
}

TEST(BenchAccuracy, a_fault_is_wrong_whatever_the_numbers) {
  Checked checked = one({1}, {1});
  checked.faults = {"wrote to its input \"a\""};
  EXPECT_FALSE(judge_accuracy(checked, Precision::fp32, {}).is_accurate);
  checked = {.outputs = {}, .reason = "no reference", .faults = {"wrote to its input \"a\""}};
  const Accuracy accuracy = judge_accuracy(checked, Precision::fp32, {});
  EXPECT_FALSE(accuracy.is_accurate);
  EXPECT_EQ(accuracy.inaccuracy, "wrote to its input \"a\"");
}

TEST(BenchAccuracy, an_output_of_another_length_is_wrong) {
  EXPECT_FALSE(judge_accuracy(one({1, 2}, {1}), Precision::fp32, {}).is_accurate);
}

TEST(BenchAccuracy, the_worst_output_speaks_for_all) {
  Checked checked = one({1}, {1});
  checked.outputs.push_back(CheckedOutput{.name = "z", .actual = {2.5}, .expected = {2}});
  const Accuracy accuracy = judge_accuracy(checked, Precision::fp32, {});
  EXPECT_NEAR(accuracy.block["relative_error"].get<double>(), 0.25, 1e-12);
  EXPECT_EQ(accuracy.block["outputs"][0]["is_within"], true);
  EXPECT_EQ(accuracy.block["outputs"][1]["is_within"], false);
}

}  // namespace
}  // namespace weir::testing
