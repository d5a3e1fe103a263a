#include <gtest/gtest.h>

#include "report/text/documents.h"
#include "support/text.h"

namespace weir {
namespace {

Json entry(const std::string& key, const std::string& status, double p50) {
  Json timing = nullptr;
  if (p50 > 0)
    timing = {{"latency_ns", {{"p50", p50 * 1e6}, {"p90", p50 * 1e6}, {"p99", p50 * 1e6}}},
              {"iterations", 30},
              {"runs_per_s", 1000 / p50}};
  Json error = nullptr;
  if (status != "ok")
    error = {{"what", "it could not be done for a reason that is told at some length"},
             {"hint", nullptr},
             {"signal", status == "crashed" ? Json("SIGSEGV") : Json()},
             {"output", nullptr}};
  return {{"key", key},
          {"kernel_name", key},
          {"status", status},
          {"timing", timing},
          {"error", error},
          {"success", status == "ok"},
          {"memory", {{"peak_bytes", 12.5e6}, {"allocated_bytes", 8e6}, {"reason", nullptr}}},
          {"energy", {{"energy_j", nullptr}, {"reason", "no energy counter"}}},
          {"accuracy", {{"rmse", 1.5e-7}, {"reason", nullptr}}}};
}

Json summary(const std::vector<Json>& cases) {
  return {
      {"schema", "weir.bench/2"},
      {"created", "2026-01-01T00:00:00Z"},
      {"status", "complete"},
      {"environment", {{"git", {{"commit", "0123456789abcdef"}, {"is_changed", true}}}, {"cpu_model", "a processor"}}},
      {"ceilings", {{"cpu", {{"bytes_per_s", {{"value", 2.5e10}}}}}}},
      {"counts", {{"ok", 1}, {"crashed", 1}}},
      {"findings", Json::array()},
      {"recommendations", {"Do this."}},
      {"regressions", nullptr},
      {"cases", cases}};
}

TEST(BenchSummary, has_its_six_sections_also_where_there_is_nothing) {
  const std::string text = report_markdown(bench_report(Json::object(), true));
  for (const char* title : {"## Environment", "## Performance Leaderboard", "## Resource Usage", "## Key Findings",
                            "## Recommendations", "## Regressions"})
    EXPECT_TRUE(has(text, title)) << title;
  EXPECT_TRUE(has(text, "None."));
}

TEST(BenchSummary, ranks_what_succeeded_and_tells_what_did_not) {
  const Json document = summary({entry("quick/cpu/fp32", "ok", 0.5), entry("broken/cpu/fp32", "crashed", 0.2),
                                 entry("absent/cuda/fp32", "skipped", 0)});
  const std::string text = report_text(bench_report(document, false));
  expect_narrow(text);
  EXPECT_TRUE(has(text, "500 us")) << text;
  EXPECT_FALSE(has(text, "2  broken")) << "what crashed has no rank" << text;
  EXPECT_TRUE(has(text, "SIGSEGV")) << text;
  EXPECT_TRUE(has(text, "absent/cuda/fp32")) << text;
  EXPECT_TRUE(has(text, "0123456789ab, with changes")) << text;
  EXPECT_TRUE(has(text, "25 GB/s")) << text;
  EXPECT_TRUE(has(text, "- Do this.")) << text;
  EXPECT_TRUE(has(text, "energy: no energy counter (1 of 2 cases)")) << text;
  EXPECT_TRUE(has(text, "12.5 MB")) << text;
}

TEST(BenchSummary, large_memory_is_told_in_a_unit_that_fits) {
  Json document = summary({entry("large/cpu/fp32", "ok", 0.5)});
  document["cases"][0]["memory"]["peak_bytes"] = 1340e6;
  EXPECT_TRUE(has(report_text(bench_report(document, false)), "1.34 GB")) << report_text(bench_report(document, false));
}

TEST(BenchSummary, a_terminal_gets_the_quickest_and_markdown_all) {
  std::vector<Json> cases;
  for (int i = 0; i < 40; ++i) cases.push_back(entry("kernel_" + std::to_string(i), "ok", 1 + i));
  const Json document = summary(cases);
  EXPECT_FALSE(has(report_text(bench_report(document, false)), "kernel_39"));
  EXPECT_TRUE(has(report_text(bench_report(document, false)), "15 more are in summary.md."));
  EXPECT_TRUE(has(report_markdown(bench_report(document, true)), "kernel_39"));
}

TEST(BenchSummary, an_interrupted_run_does_not_say_that_there_was_no_baseline) {
  Json document = summary({entry("quick/cpu/fp32", "ok", 0.5)});
  document["status"] = "interrupted";
  EXPECT_TRUE(has(report_text(bench_report(document, false)), "Nothing was compared: the run was interrupted"))
      << report_text(bench_report(document, false));
  EXPECT_FALSE(has(report_text(bench_report(document, false)), "there is no baseline"));
}

TEST(BenchSummary, escapes_of_a_package_do_not_reach_the_terminal) {
  Json document = summary({entry("evil\x1b[2J", "failed", 0)});
  document["cases"][0]["error"]["what"] = "\x1b[31mred";
  EXPECT_FALSE(has(report_text(bench_report(document, false)), "\x1b"));
  EXPECT_FALSE(has(bench_line(document["cases"][0]), "\x1b"));
}

TEST(BenchSummary, a_list_shows_what_would_run_and_what_not) {
  const Json plan = {{"units",
                      {{{"package", "softmax"},
                        {"backend", "cpu"},
                        {"precisions", {"fp32", "fp16"}},
                        {"problems", {"rows=1"}},
                        {"iterations", 30},
                        {"rounds", 3}}}},
                     {"skipped", {{{"package", "fft"}, {"backend", "cuda"}, {"reason", "cuda is not here"}}}}};
  const std::string text = report_text(bench_plan_report(plan));
  expect_narrow(text);
  EXPECT_TRUE(has(text, "fp32,fp16")) << text;
  EXPECT_TRUE(has(text, "cuda is not here")) << text;
}

}  // namespace
}  // namespace weir
