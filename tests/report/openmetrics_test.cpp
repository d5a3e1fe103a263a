// Results as OpenMetrics: every line against the grammar, base units, what is not known is not there, hostile names.
#include <gtest/gtest.h>

#include "base/error.h"
#include "report/figures/figures.h"
#include "support/openmetrics_check.h"
#include "support/result_documents.h"

namespace weir {
namespace {

using testing::check_openmetrics;
using testing::Exposition;
using testing::result_document;

Exposition exported(const Json& document) {
  return check_openmetrics(results_openmetrics(figures_of(document, "r.json")));
}

TEST(ResultsOpenMetrics, a_run_is_told_in_base_units) {
  const Exposition read = exported(result_document());
  EXPECT_EQ(read.find("weir_info", {{"version", "1.2.3"}})->value, 1);
  EXPECT_EQ(read.find("weir_run_latency_seconds", {{"quantile", "0.5"}})->value, 0.002);
  EXPECT_EQ(read.find("weir_run_latency_seconds", {{"quantile", "1"}})->value, 0.004);
  EXPECT_EQ(read.find("weir_run_latency_high_seconds", {{"quantile", "0.5"}})->value, 0.0021);
  EXPECT_EQ(read.find("weir_run_throughput_per_second", {{"work", "FLOP"}})->value, 50e9);
  EXPECT_EQ(read.find("weir_run_host_per_command_seconds")->value, 4e-6);
  EXPECT_EQ(read.find("weir_run_memory_allocated_bytes")->value, 4096);
  EXPECT_EQ(read.find("weir_run_failed")->value, 0);
  EXPECT_EQ(read.find("weir_run_created_timestamp_seconds")->value, 1769860800);
  EXPECT_EQ(read.units.at("weir_run_latency_seconds"), "seconds");
  const auto& labels = read.find("weir_run_failed")->labels;
  EXPECT_EQ(labels.at("workload"), "moe");
  EXPECT_EQ(labels.at("device"), "sim:h200");
  EXPECT_EQ(labels.at("streams"), "8");
  EXPECT_EQ(labels.at("parameters"), "experts=4,order=mixed");
}

TEST(ResultsOpenMetrics, what_is_not_known_is_not_there) {
  const Exposition read = exported(result_document());
  EXPECT_FALSE(read.types.contains("weir_run_energy_per_iteration_joules"));
  EXPECT_EQ(read.find("weir_run_latency_low_seconds", {{"quantile", "0.99"}}), nullptr);
  EXPECT_FALSE(read.types.contains("weir_run_floor_per_command_seconds"));
}

TEST(ResultsOpenMetrics, a_failed_run_says_so_and_little_else) {
  Json failed = result_document();
  failed["status"] = "failed";
  failed["failure"] = "the device vanished";
  failed["metrics"] = nullptr;
  failed["samples"] = nullptr;
  const Exposition read = exported(failed);
  EXPECT_EQ(read.find("weir_run_failed")->value, 1);
  EXPECT_EQ(read.find("weir_run_complete")->value, 0);
  EXPECT_EQ(read.find("weir_run_latency_seconds"), nullptr);
  Json wrong = result_document();
  wrong["check"]["status"] = "failed";
  EXPECT_EQ(exported(wrong).find("weir_run_failed")->value, 1) << "its output is wrong";
}

TEST(ResultsOpenMetrics, repeated_runs_stay_apart) {
  std::vector<FigureRow> rows = figures_of(result_document(), "a.json");
  rows.push_back(rows[0]);
  const Exposition read = check_openmetrics(results_openmetrics(rows));
  EXPECT_NE(read.find("weir_run_failed", {{"repeat", "2"}}), nullptr);
  EXPECT_FALSE(read.find("weir_run_failed")->labels.contains("repeat"));
}

TEST(ResultsOpenMetrics, names_from_files_take_no_effect) {
  Json hostile = result_document();
  const std::string name = "a\"} 1\n# EOF\n\\x\x1b[31m\xff";
  hostile["workload"]["name"] = name;
  hostile["device"]["name"] = std::string(100'000, 'x');
  hostile["metrics"]["throughput"]["unit"] = "\n}{/s";
  hostile["metrics"]["latency_ns"]["p50"] = "fast";
  hostile["metrics"]["latency_ns"]["p95"] = Json::array();
  hostile["parameters"] = Json::array({1, 2});
  hostile["created"] = "yesterday";
  const std::string text = results_openmetrics(figures_of(hostile, "r.json"));
  const Exposition read = check_openmetrics(text);
  EXPECT_NE(read.find("weir_run_failed", {{"workload", "a\"} 1\n# EOF\n\\x?[31m?"}}), nullptr) << text;
  EXPECT_EQ(read.find("weir_run_latency_seconds", {{"quantile", "0.5"}}), nullptr);
  EXPECT_FALSE(read.types.contains("weir_run_created_timestamp_seconds"));
  EXPECT_LT(text.size(), 100'000U) << "labels are bounded";
}

TEST(ResultsOpenMetrics, benches_overlaps_and_preemption_are_told_too) {
  const Exposition bench = exported(testing::bench_document());
  EXPECT_EQ(bench.find("weir_bench_latency_seconds", {{"kernel", "softmax"}, {"quantile", "0.5"}})->value, 0.00125);
  EXPECT_EQ(bench.find("weir_bench_memory_peak_bytes", {{"kernel", "softmax"}})->value, 5.5e6);
  EXPECT_EQ(bench.find("weir_bench_failed", {{"kernel", "fft"}})->value, 1);
  EXPECT_EQ(bench.find("weir_bench_latency_seconds", {{"kernel", "fft"}}), nullptr);
  const Exposition overlap = exported(testing::overlap_document());
  EXPECT_EQ(overlap.find("weir_overlap_step_seconds", {{"pass", "serial"}, {"quantile", "0.5"}})->value, 0.08);
  EXPECT_EQ(overlap.find("weir_overlap_efficiency_ratio")->value, 0.75);
  EXPECT_EQ(overlap.find("weir_overlap_exposed_cause_seconds", {{"cause", "no_room"}})->value, 5e-5);
  const Exposition preempt = exported(testing::preempt_document());
  EXPECT_EQ(preempt.find("weir_preempt_to_start_seconds", {{"mechanism", "priority"}, {"quantile", "0.99"}})->value,
            1.5e-5);
}

TEST(ResultsOpenMetrics, a_cause_that_is_there_twice_is_told_once) {
  Json overlap = testing::overlap_document();
  overlap["causes"].push_back(overlap["causes"][0]);
  EXPECT_NO_THROW(exported(overlap));
}

TEST(Figures, other_documents_are_rejected_by_name) {
  for (const char* text : {R"({"schema": "weir.result/2"})", R"({"schema": 7})", "[]", "7",
                           R"({"schema": "weir.result/2"})", R"({"schema": "weir.sweep/1", "results": 7})",
                           R"({"schema": "weir.sweep/1", "results": [{"schema": "weir.bench/2"}]})"}) {
    try {
      figures_of(Json::parse(text), "x.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
      EXPECT_TRUE(std::string(error.what()).starts_with("x.json: ")) << error.what();
    }
  }
}

TEST(Figures, times_of_day_become_seconds) {
  EXPECT_EQ(unix_seconds("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(unix_seconds("2026-01-31T12:00:00Z"), 1769860800);
  for (const char* bad :
       {"", "2026-13-01T00:00:00Z", "2026-01-31T12:00:00", "2026-01-31T12:00:00Zx", "2026-02-30T00:00:00Z"})
    EXPECT_FALSE(unix_seconds(bad)) << bad;
}

}  // namespace
}  // namespace weir
