// Results, sweeps and comparisons in a report: what is drawn together, what stays although it failed, what is found.
#include "report/page/results.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/page/baseline.h"
#include "report/page/gather.h"
#include "report/page/samples.h"

namespace weir::page {
namespace {

using testing::PageFolder;
using testing::report_on;
using testing::result_document;
using testing::ResultShape;
using testing::sweep_document;

ResultShape shape(int streams, double throughput = 100) {
  ResultShape made;
  made.streams = streams;
  made.throughput = throughput;
  return made;
}

// The first finding that holds this text.
const Json* finding(const Json& document, const std::string& part) {
  for (const Json& each : document["verdict"]["findings"])
    if (each["text"].get<std::string>().find(part) != std::string::npos) return &each;
  return nullptr;
}

TEST(ReportResults, makes_one_point_and_a_distribution_of_one_result) {
  PageFolder folder;
  const Json document = report_on({folder.put("r.json", result_document())});
  ASSERT_EQ(document["scaling"].size(), 1u);
  const Json& item = document["scaling"][0];
  EXPECT_EQ(item["title"], "tiny");
  EXPECT_EQ(item["unit"], "GFLOP/s");
  EXPECT_EQ(item["source"], 0);
  const Json& curve = item["curves"][0];
  EXPECT_EQ(curve["name"], "inline");
  ASSERT_EQ(curve["points"].size(), 1u);
  const Json& point = curve["points"][0];
  EXPECT_EQ(point["streams"], 4);
  EXPECT_EQ(point["throughput"], 100.0);
  EXPECT_EQ(point["throughput_interval"], Json::array({99, 101}));
  EXPECT_EQ(point["latency_ns"]["p50"], 1009.5);
  EXPECT_EQ(point["host_ns_per_command"], 10.0);
  EXPECT_EQ(point["count"], 20);
  EXPECT_EQ(curve["floor"][0]["ns_per_command"], 1.5);
  EXPECT_TRUE(curve["usl"].is_null());
  EXPECT_TRUE(curve["usl_reason"].is_string());
  const Json& series = document["distributions"][0]["series"][0];
  EXPECT_EQ(series["name"], "inline, 4 streams");
  EXPECT_EQ(series["values"].size(), 20u);
  EXPECT_EQ(series["values"][0], 1000);
  EXPECT_EQ(series["p50"], 1009.5);
}

TEST(ReportResults, puts_results_that_differ_in_streams_on_one_curve) {
  PageFolder folder;
  for (const int streams : {8, 1, 4, 2})
    folder.put(std::to_string(streams) + ".json", result_document(shape(streams, streams * 50.0)));
  const Json document = report_on({folder.path()});
  ASSERT_EQ(document["scaling"].size(), 1u);
  const Json& curve = document["scaling"][0]["curves"][0];
  std::vector<int> order;
  for (const Json& point : curve["points"]) order.push_back(point["streams"].get<int>());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 4, 8}));
  EXPECT_TRUE(curve["usl"].is_object());
  EXPECT_DOUBLE_EQ(curve["points"][3]["efficiency"].get<double>(), 1.0);
  EXPECT_TRUE(document["scaling"][0]["source"].is_null()) << "four files are not one source";
}

TEST(ReportResults, never_mixes_devices_in_one_curve) {
  PageFolder folder;
  ResultShape other = shape(8);
  other.device = "cuda:0";
  other.model = "NVIDIA H200";
  const Json document =
      report_on({folder.put("a.json", result_document(shape(4))), folder.put("b.json", result_document(other))});
  ASSERT_EQ(document["scaling"].size(), 2u);
  EXPECT_NE(document["scaling"][0]["environment"], document["scaling"][1]["environment"]);
  EXPECT_NE(document["scaling"][0]["title"], document["scaling"][1]["title"]);
  for (const Json& item : document["scaling"]) EXPECT_EQ(item["curves"][0]["points"].size(), 1u);
  // Nor within a sweep that somebody has put together.
  const Json mixed =
      report_on({folder.put("s.json", sweep_document({result_document(shape(4)), result_document(other)}))});
  EXPECT_EQ(mixed["scaling"].size(), 2u);
}

TEST(ReportResults, keeps_other_parameters_and_ways_of_submitting_apart) {
  PageFolder folder;
  Json larger = result_document(shape(4));
  larger["parameters"]["size"] = 128;
  ResultShape graph = shape(4);
  graph.submit = "graph";
  const Json document = report_on({folder.put("a.json", result_document(shape(4))), folder.put("b.json", larger),
                                   folder.put("c.json", result_document(graph))});
  ASSERT_EQ(document["scaling"].size(), 2u);
  EXPECT_EQ(document["scaling"][0]["title"], "tiny, size 64");
  EXPECT_EQ(document["scaling"][1]["title"], "tiny, size 128");
  ASSERT_EQ(document["scaling"][0]["curves"].size(), 2u);
  EXPECT_EQ(document["scaling"][0]["curves"][1]["name"], "graph");
}

TEST(ReportResults, gives_a_repeated_point_a_curve_of_its_own) {
  PageFolder folder;
  const Json document = report_on(
      {folder.put("a.json", result_document(shape(4, 100))), folder.put("b.json", result_document(shape(4, 200)))});
  ASSERT_EQ(document["scaling"].size(), 1u);
  ASSERT_EQ(document["scaling"][0]["curves"].size(), 2u);
  EXPECT_EQ(document["scaling"][0]["curves"][0]["points"][0]["throughput"], 100.0);
  EXPECT_EQ(document["scaling"][0]["curves"][1]["points"][0]["throughput"], 200.0);
}

TEST(ReportResults, shows_failed_points_as_failed) {
  PageFolder folder;
  Json wrong = result_document(shape(16));
  wrong["check"] = {{"status", "failed"}, {"reason", "buffer 3 differs"}};
  const Json document =
      report_on({folder.put("s.json", sweep_document({result_document(shape(4)),
                                                      testing::failed_document(shape(8), "out of memory"), wrong}))});
  const Json& points = document["scaling"][0]["curves"][0]["points"];
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[1]["failure"], "the run failed: out of memory");
  EXPECT_EQ(points[2]["failure"], "its output is wrong: buffer 3 differs");
  for (const char* name : {"throughput", "throughput_interval", "efficiency"}) {
    EXPECT_TRUE(points[1][name].is_null()) << name;
    EXPECT_TRUE(points[2][name].is_null()) << name;
  }
  for (const char* name : {"p50", "p50_interval", "p99"}) {
    EXPECT_TRUE(points[1]["latency_ns"][name].is_null()) << name;
    EXPECT_TRUE(points[2]["latency_ns"][name].is_null()) << name;
  }
  EXPECT_EQ(document["verdict"]["tone"], "bad");
  const Json* found = finding(document, "2 of 3 points failed");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ((*found)["advice"], "Try again.");
  EXPECT_EQ((*found)["anchor"], document["scaling"][0]["id"]);
}

TEST(ReportResults, thins_long_series_to_exact_quantiles) {
  PageFolder folder;
  ResultShape many = shape(4);
  many.count = 5120;
  const Json document = report_on({folder.put("r.json", result_document(many))});
  const Json& series = document["distributions"][0]["series"][0];
  EXPECT_EQ(series["count"], 5120);
  ASSERT_EQ(series["values"].size(), 512u);
  // Samples are 1000, 1001, ...: the quantile at level q is 1000 + q * 5119.
  for (const std::size_t i : {0u, 100u, 511u})
    EXPECT_NEAR(series["values"][i].get<double>(), 1000 + (static_cast<double>(i) + 0.5) / 512 * 5119, 0.001);
  EXPECT_NEAR(series["p99"].get<double>(), 1000 + 0.99 * 5119, 1e-6);
}

TEST(ReportResults, says_how_many_streams_are_enough) {
  PageFolder folder;
  const Json document = report_on(
      {folder.put("s.json", sweep_document({result_document(shape(1, 50)), result_document(shape(2, 99)),
                                            result_document(shape(4, 100)), result_document(shape(8, 100.5))}))});
  EXPECT_EQ(document["scaling"][0]["curves"][0]["knee"], 2);
  const Json* found = finding(document, "2 are enough for 95%");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ((*found)["tone"], "neutral");
  EXPECT_NE((*found)["advice"].get<std::string>().find("Use 2 streams"), std::string::npos);
}

TEST(ReportResults, warns_where_more_streams_cost_throughput) {
  PageFolder folder;
  const Json document =
      report_on({folder.put("s.json", sweep_document({result_document(shape(1, 50)), result_document(shape(2, 100)),
                                                      result_document(shape(4, 70))}))});
  const Json* found = finding(document, "throughput falls by 30 % from 2 to 4 streams");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ((*found)["tone"], "warning");
}

TEST(ReportResults, finds_a_busy_host_a_convoy_and_unfair_streams_by_their_numbers) {
  PageFolder folder;
  Json result = result_document(shape(4));
  EXPECT_EQ(finding(report_on({folder.put("a.json", result)}), "the host submits"), nullptr);
  result["metrics"]["host_ns_per_command"] = 95;
  result["metrics"]["fairness"] = 0.5;
  result["metrics"]["convoy"] = {
      {"role", "small"}, {"index", 12.5}, {"mixed_ns", {{"p99", 9000}}}, {"alone_ns", {{"p99", 720}}}};
  result["warnings"] = {
      {{"code", "throttled"}, {"message", "the device held its clocks back: power"}, {"advice", "Cool it."}}};
  const Json document = report_on({folder.put("b.json", result)});
  const Json* host = finding(document, "the host submits for 94 % of an iteration's time");
  ASSERT_NE(host, nullptr);
  EXPECT_NE((*host)["advice"].get<std::string>().find("--submit graph"), std::string::npos);
  EXPECT_NE(finding(document, "small commands take 12.5x as long"), nullptr);
  EXPECT_NE(finding(document, "fairness 0.500"), nullptr);
  const Json* throttled = finding(document, "held its clocks back");
  ASSERT_NE(throttled, nullptr);
  EXPECT_EQ((*throttled)["advice"], "Cool it.");
}

TEST(ReportComparison, puts_what_became_slower_first) {
  PageFolder folder;
  const Json document = report_on({folder.put("c.json", testing::comparison_document("slower", 1.25))});
  ASSERT_EQ(document["comparisons"].size(), 1u);
  const Json& item = document["comparisons"][0];
  EXPECT_EQ(item["baseline"], "old.json");
  EXPECT_EQ(item["test"], "new.json");
  EXPECT_EQ(item["verdicts"]["slower"], 1);
  EXPECT_EQ(item["verdicts"]["same"], 0);
  EXPECT_EQ(item["pairs"][0]["metrics"][0]["metric"], "latency");
  EXPECT_EQ(item["pairs"][0]["metrics"][0]["ratio"], 1.25);
  EXPECT_EQ(item["only"][0]["side"], "baseline");
  EXPECT_EQ(document["verdict"]["tone"], "bad");
  EXPECT_NE(document["verdict"]["headline"].get<std::string>().find("slower than its baseline"), std::string::npos);
  EXPECT_EQ(report_on({folder.put("d.json", testing::comparison_document("faster", 0.5))})["verdict"]["tone"], "good");
  EXPECT_EQ(report_on({folder.put("e.json", testing::comparison_document("ambiguous", 1))})["verdict"]["tone"],
            "warning");
}

TEST(ReportComparison, compares_results_with_a_baseline) {
  PageFolder folder;
  ResultShape slow = shape(4);
  slow.latency_ns = 2000;
  Page page("A report", "now", {});
  const auto measured = gather(page, {folder.put("new.json", result_document(slow))}, {}).measured;
  add_baseline(page, folder.put("old.json", result_document(shape(4))), measured);
  ASSERT_EQ(page.item_count(), 1u);
  const Json document = std::move(page).document();
  const Json& item = document["comparisons"][0];
  EXPECT_EQ(item["pairs"][0]["verdict"], "slower");
  EXPECT_TRUE(item["source"].is_null());
  EXPECT_EQ(document["verdict"]["tone"], "bad");
}

TEST(ReportComparison, refuses_a_baseline_without_a_partner_and_goes_on) {
  PageFolder folder;
  Page page("A report", "now", {});
  const auto measured = gather(page, {folder.put("new.json", result_document(shape(4)))}, {}).measured;
  ResultShape other = shape(4);
  other.workload = "another";
  add_baseline(page, folder.put("old.json", result_document(other)), measured);
  add_results(page, measured);
  EXPECT_EQ(page.refused().size(), 1u);
  const Json document = std::move(page).document();
  EXPECT_TRUE(document["comparisons"].empty());
  EXPECT_EQ(document["scaling"].size(), 1u);
}

}  // namespace
}  // namespace weir::page
