#include "lab/kernels/document.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weir::bench {
namespace {

using package::Backend;

package::Package named(const std::string& name) {
  package::Package package;
  package.name = name;
  return package;
}

Json measured(const std::string& name, std::vector<double> samples_ms, Precision precision = Precision::fp32,
              Backend backend = Backend::cpu) {
  Json entry = entry_of(named(name), {backend, precision, {{"rows", {1024}}}, 7});
  std::vector<double> samples_ns;
  for (const double sample : samples_ms) samples_ns.push_back(sample * 1e6);
  entry["device"] = {{"name", "cpu"}, {"model", "m"}};
  entry["timing"] = timing_block(samples_ns);
  entry["timing"]["warmup_runs"] = 3;
  entry["timing"]["is_steady"] = true;
  entry["timing"]["stopped_by"] = "iterations";
  entry["timing"]["items_per_s"] = 1000.0 * entry["timing"]["runs_per_s"].get<double>();
  entry["accuracy"] = {{"rmse", 1e-6}, {"is_within", true}, {"reason", nullptr}};
  entry["success"] = true;
  entry["status"] = "ok";
  entry["error"] = nullptr;
  return entry;
}

bool is_among(const std::vector<std::string>& lines, const std::string& part) {
  for (const std::string& line : lines)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

TEST(BenchDocument, an_entry_says_what_was_to_be_measured) {
  const Json entry =
      entry_of(named("softmax"), {Backend::cuda, Precision::fp16, {{"grid", {64, 32}}, {"eps", {0.5}}}, 9});
  EXPECT_EQ(entry["key"], "softmax/cuda/fp16/grid=64x32,eps=0.5");
  EXPECT_EQ(entry["problem_size"].dump(), R"({"grid":[64,32],"eps":0.5})");
  EXPECT_EQ(entry["seed"], 9);
  EXPECT_EQ(entry["success"], false);
  EXPECT_TRUE(entry["timing"].is_null());
}

TEST(BenchDocument, rounds_are_put_together) {
  const Json merged = merge_rounds(std::vector{measured("k", {1, 2, 3}), measured("k", {4, 5})});
  EXPECT_EQ(merged["timing"]["rounds"], Json({3, 2}));
  EXPECT_EQ(merged["timing"]["iterations"], 5);
  EXPECT_DOUBLE_EQ(merged["timing"]["latency_ns"]["p50"].get<double>(), 3e6);
  EXPECT_EQ(merged["timing"]["warmup_runs"], 6);
  EXPECT_EQ(merged["status"], "ok");
  EXPECT_NEAR(merged["timing"]["items_per_s"].get<double>(), 1000 * merged["timing"]["runs_per_s"].get<double>(), 1e-6);
}

TEST(BenchDocument, the_worst_round_decides) {
  Json crashed = entry_of(named("k"), {Backend::cpu, Precision::fp32, {{"rows", {1024}}}, 7});
  put_failure(crashed, "crashed", "crashed: signal 11", "", "SIGSEGV", "said");
  const Json merged = merge_rounds(std::vector{measured("k", {1, 2}), crashed});
  EXPECT_EQ(merged["status"], "crashed");
  EXPECT_EQ(merged["success"], false);
  EXPECT_EQ(merged["error"]["signal"], "SIGSEGV");
  EXPECT_EQ(merged["timing"]["iterations"], 2) << "what was measured before is kept";
  EXPECT_THROW(merge_rounds({}), Error);
}

TEST(BenchDocument, the_worst_accuracy_and_all_of_the_energy_are_told) {
  Json one = measured("k", {1}), two = measured("k", {1});
  two["accuracy"] = {{"rmse", 1e-3}, {"is_within", true}, {"reason", nullptr}};
  one["energy"] = {{"energy_j", 2.0}, {"power_w", 10.0}, {"window_ns", 1e9}, {"runs", 5}, {"readings", 20}};
  two["energy"] = {{"energy_j", 4.0}, {"power_w", 60.0}, {"window_ns", 1e9}, {"runs", 15}, {"readings", 20}};
  const Json merged = merge_rounds(std::vector{one, two});
  EXPECT_DOUBLE_EQ(merged["accuracy"]["rmse"].get<double>(), 1e-3);
  EXPECT_DOUBLE_EQ(merged["energy"]["energy_j"].get<double>(), 70.0 / 20);
  EXPECT_DOUBLE_EQ(merged["energy"]["power_w"].get<double>(), 35);
  EXPECT_EQ(merged["energy"]["runs"], 20);
}

TEST(BenchDocument, rates_of_the_roofline_follow_the_median_of_all) {
  Json one = measured("k", {2}), two = measured("k", {4});
  one["roofline"] = {{"bound", "memory"}, {"of_ceiling", 0.8}, {"bytes_per_s", 80.0}, {"flop_per_s", nullptr}};
  const Json merged = merge_rounds(std::vector{one, two});
  EXPECT_NEAR(merged["roofline"]["of_ceiling"].get<double>(), 0.8 * 2 / 3, 1e-12);
  EXPECT_NEAR(merged["roofline"]["bytes_per_s"].get<double>(), 80.0 * 2 / 3, 1e-9);
  EXPECT_TRUE(merged["roofline"]["flop_per_s"].is_null());
}

TEST(BenchDocument, being_beyond_a_ceiling_follows_the_median_of_all_too) {
  const auto with = [](double p50_ms, double share) {
    Json entry = measured("k", {p50_ms, p50_ms, p50_ms});
    entry["roofline"] = {{"of_ceiling", share}, {"is_beyond", share > 1}, {"reason", share > 1 ? "beyond" : "below"}};
    return entry;
  };
  const Json merged = merge_rounds(std::vector{with(1, 1.2), with(1.5, 0.8), with(1.6, 0.75)});
  EXPECT_NEAR(merged["roofline"]["of_ceiling"].get<double>(), 0.8, 1e-12);
  EXPECT_EQ(merged["roofline"]["is_beyond"], false);
  EXPECT_EQ(merged["roofline"]["reason"], "below");
}

TEST(BenchDocument, a_round_with_nan_is_worse_than_one_with_a_large_error) {
  Json large = measured("k", {1}), nan = measured("k", {1});
  large["accuracy"] = {{"rmse", 7.0}, {"is_within", false}, {"reason", "far off"}};
  nan["accuracy"] = {{"rmse", nullptr}, {"is_within", false}, {"reason", "NaN"}};
  EXPECT_EQ(merge_rounds(std::vector{large, nan})["accuracy"]["reason"], "NaN");
  EXPECT_EQ(merge_rounds(std::vector{nan, large})["accuracy"]["reason"], "NaN");
}

TEST(BenchDocument, clocks_and_resolution_are_those_of_all_rounds) {
  Json one = measured("k", {1}), two = measured("k", {1});
  one["timing"]["clocks_mhz"] = {{"p50", 1980}, {"low", 1980}, {"high", 1980}, {"readings", 3}};
  two["timing"]["clocks_mhz"] = {{"p50", 1500}, {"low", 1200}, {"high", 1600}, {"readings", 4}};
  one["timing"]["resolution"] = 1e-4;
  two["timing"]["resolution"] = 5e-4;
  one["energy"] = {{"energy_j", 2.0}, {"window_ns", 1e9}, {"runs", 5}, {"readings", 20}, {"busy", 1.0}};
  two["energy"] = {{"energy_j", 2.0}, {"window_ns", 3e9}, {"runs", 5}, {"readings", 20}, {"busy", 0.6}};
  const Json merged = merge_rounds(std::vector{one, two});
  EXPECT_EQ(merged["timing"]["clocks_mhz"]["low"], 1200);
  EXPECT_EQ(merged["timing"]["clocks_mhz"]["high"], 1980);
  EXPECT_EQ(merged["timing"]["clocks_mhz"]["p50"], 1740);
  EXPECT_EQ(merged["timing"]["clocks_mhz"]["readings"], 7);
  EXPECT_EQ(merged["timing"]["resolution"], 5e-4);
  EXPECT_NEAR(merged["energy"]["busy"].get<double>(), 0.7, 1e-12);
}

TEST(BenchDocument, a_kernel_document_shows_the_first_that_succeeded) {
  Json failed = entry_of(named("k"), Backend::cuda);
  put_failure(failed, "failed", "no", "", "", "");
  const Json document = kernel_document("k", std::vector{failed, measured("k", {1})});
  EXPECT_EQ(document["schema"], "weir.bench_kernel/2");
  EXPECT_EQ(document["status"], "ok");
  EXPECT_EQ(document["cases"].size(), 2U);
  EXPECT_EQ(kernel_document("k", std::vector{failed})["status"], "failed");
}

TEST(BenchDocument, a_summary_is_sorted_by_p50_and_counts_everything) {
  Json skipped = entry_of(named("c"), Backend::cuda);
  put_failure(skipped, "skipped", "not here", "", "", "");
  const package::Skipped left_out[] = {{"d", "", "", "", "left out by --filter", ""}};
  const Json summary = summary_document(Json::object(), Json::object(), Json::object(),
                                        std::vector{skipped, measured("b", {5}), measured("a", {1})}, left_out);
  EXPECT_EQ(summary["cases"][0]["kernel_name"], "a");
  EXPECT_EQ(summary["cases"][2]["kernel_name"], "c");
  EXPECT_EQ(summary["counts"]["ok"], 2);
  EXPECT_EQ(summary["counts"]["skipped"], 1);
  EXPECT_EQ(summary["skipped"][0]["reason"], "left out by --filter");
  EXPECT_TRUE(summary["regressions"].is_null());
}

TEST(BenchFindings, nothing_is_said_where_nothing_stands_out) {
  const std::vector<Json> entries = {measured("k", {1, 1, 1})};
  EXPECT_TRUE(findings(entries).empty()) << findings(entries)[0];
  EXPECT_TRUE(recommendations(entries).empty());
}

TEST(BenchFindings, a_kernel_far_below_the_bandwidth_is_named_with_its_share) {
  Json entry = measured("k", {1}, Precision::fp32, Backend::cuda);
  entry["roofline"] = {{"bound", "memory"}, {"of_ceiling", 0.31}};
  EXPECT_TRUE(is_among(findings(std::vector{entry}), "memory-bound at 31 % of the bandwidth"));
  EXPECT_TRUE(is_among(recommendations(std::vector{entry}), "uncoalesced?"));
  entry["timing"]["is_launch_bound"] = true;
  EXPECT_FALSE(is_among(findings(std::vector{entry}), "memory-bound")) << "the launch is what is measured";
  EXPECT_TRUE(is_among(findings(std::vector{entry}), "The launch takes longer"));
}

TEST(BenchFindings, half_precision_that_gains_nothing_is_named) {
  const std::vector<Json> entries = {measured("k", {1}), measured("k", {1.1}, Precision::fp16)};
  EXPECT_TRUE(is_among(findings(entries), "of fp32's time: k/cpu/fp16/rows=1024 (110 %)"));
  const std::vector<Json> faster = {measured("k", {1}), measured("k", {0.6}, Precision::fp16)};
  EXPECT_FALSE(is_among(findings(faster), "of fp32's time"));
}

TEST(BenchFindings, advice_about_disturbed_samples_follows_what_disturbed_them) {
  Json entry = measured("k", {1, 1, 1, 1});
  entry["backend"] = "cuda";
  entry["timing"]["disturbed"] = {{"count", 3}, {"reasons", {{"throttled: power cap", 2}, {"others had the core", 1}}}};
  EXPECT_TRUE(is_among(recommendations(std::vector{entry}), "Lock clocks or cool the device"));
  entry["timing"]["disturbed"]["reasons"] = {{"the hypervisor took time", 3}};
  EXPECT_FALSE(is_among(recommendations(std::vector{entry}), "Lock clocks"));
  EXPECT_TRUE(is_among(recommendations(std::vector{entry}), "quieter machine"));
}

TEST(BenchFindings, noise_drift_and_rounds_that_differ_are_named) {
  std::vector<double> noisy(50, 1);
  noisy.back() = 9;
  EXPECT_TRUE(is_among(findings(std::vector{measured("k", noisy)}), "Noisy, p99 over p50: k/cpu"));
  Json drifting = measured("k", {1, 1});
  drifting["timing"]["is_steady"] = false;
  EXPECT_TRUE(is_among(findings(std::vector{drifting}), "Not seen to be steady"));
  EXPECT_TRUE(is_among(recommendations(std::vector{drifting}), "--warmup"));
  const Json split = merge_rounds(std::vector{measured("k", {1, 1, 1}), measured("k", {1.3, 1.3, 1.3})});
  EXPECT_TRUE(
      is_among(findings(std::vector{split}), "Medians differ from process to process: k/cpu/fp32/rows=1024 (by 30 %)"));
}

TEST(BenchFindings, what_is_not_checked_or_failed_is_named) {
  Json unchecked = measured("k", {1});
  unchecked["accuracy"] = {{"rmse", nullptr}, {"is_within", nullptr}, {"reason", "it has no reference"}};
  EXPECT_TRUE(is_among(findings(std::vector{unchecked}), "Not checked: k/cpu/fp32/rows=1024 (it has no reference)"));
  Json failed = entry_of(named("f"), Backend::cpu);
  put_failure(failed, "crashed", "crashed", "Look there.", "SIGSEGV", "");
  EXPECT_TRUE(is_among(findings(std::vector{failed}), "1 of 1 cases did not succeed: f/cpu (crashed)"));
  EXPECT_TRUE(is_among(recommendations(std::vector{failed}), "f/cpu: Look there."));
}

}  // namespace
}  // namespace weir::bench
