#include "base/upgrade.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

Json upgraded(const char* text) {
  Json document = parse_json(text, "document");
  upgrade(document);
  return document;
}

TEST(Upgrade, MovesNamesInTheirPlace) {
  const Json document = upgraded(R"json({"schema": "weir.result/1", "processes": [
      {"samples": 3, "p50_ns": 12, "commands_per_second": 7}, {"samples": 3, "p50_ns": null, "commands_per_second": 8}],
    "check": {"status": "passed", "seconds": 0.25}, "ranks": {"skew": {"instances": 2, "p50_ns": 1, "p95_ns": 2,
      "p99_ns": 3, "max_ns": 4, "clock_error_ns": 5}}})json");
  EXPECT_EQ(document, parse_json(R"json({"schema": "weir.result/2", "processes": [
      {"samples": 3, "latency_ns": {"p50": 12}, "commands_per_s": 7},
      {"samples": 3, "latency_ns": {"p50": null}, "commands_per_s": 8}],
    "check": {"status": "passed", "duration_ns": 250000000}, "ranks": {"skew": {"instances": 2,
      "skew_ns": {"p50": 1, "p95": 2, "p99": 3, "max": 4}, "clock_error_ns": 5}}})json",
                                 "expected"));
}

TEST(Upgrade, ScalesListsAndMembersOfObjects) {
  const Json document = upgraded(R"json({"schema": "weir.bench/1", "ceilings": {"cpu": {"bandwidth": {"value": 1}}},
    "cases": [{"timing": {"latency_ms_p50": 1.5, "interval_ms": [1, 2], "samples_ms": [1, null, 2.5],
               "disturbed": {"samples_ms": [3]}}, "memory": {"peak_mb": 2, "allocated_mb": null}}],
    "regressions": {"cases": [{"p50_ms_before": 1, "p50_ms_after": 2}]}})json");
  EXPECT_EQ(document["ceilings"]["cpu"]["bytes_per_s"]["value"], 1);
  const Json& timing = document["cases"][0]["timing"];
  EXPECT_EQ(timing["latency_ns"], parse_json(R"({"p50": 1500000, "p50_interval": [1000000, 2000000]})", "expected"));
  EXPECT_EQ(timing["samples_ns"], parse_json("[1000000, null, 2500000]", "expected"));
  EXPECT_EQ(timing["disturbed"]["samples_ns"][0], 3e6);
  EXPECT_EQ(document["cases"][0]["memory"]["peak_bytes"], 2e6);
  EXPECT_TRUE(document["cases"][0]["memory"]["allocated_bytes"].is_null());
  EXPECT_EQ(document["regressions"]["cases"][0]["after_ns"]["p50"], 2e6);
}

TEST(Upgrade, FollowsNamesThatItMade) {
  const Json document =
      upgraded(R"json({"schema": "weir.preempt/1", "alone": {"to_end": {"p50_ns": 5, "p99_interval_ns": [1, 2]},
    "medians_ns": [4, 6]}, "mechanisms": [{"points": [{"late": {"max_ns": 3}, "start_p99_in_blocks": null,
    "unavailable": {"start_p99_in_blocks": "why"}}]}]})json");
  EXPECT_EQ(document["alone"],
            parse_json(R"({"to_end_ns": {"p50": 5, "p99_interval": [1, 2], "p50_by_repeat": [4, 6]}})", "expected"));
  const Json& point = document["mechanisms"][0]["points"][0];
  EXPECT_EQ(point["late_ns"]["max"], 3);
  EXPECT_TRUE(point["start_in_blocks"].contains("p99"));
  EXPECT_EQ(point["unavailable"]["start_in_blocks"], "why");
}

TEST(Upgrade, RenamesReasonsAndResultsOfSweeps) {
  const Json sweep = upgraded(R"json({"schema": "weir.sweep/1", "results": [3, {"schema": "weir.result/1",
    "metrics": {"commands_per_second": null}, "unavailable": {"metrics.commands_per_second": "why", "x": "y"}}]})json");
  EXPECT_EQ(sweep["schema"], "weir.sweep/1");
  EXPECT_EQ(sweep["results"][1]["schema"], "weir.result/2");
  EXPECT_EQ(sweep["results"][1]["unavailable"],
            parse_json(R"({"metrics.commands_per_s": "why", "x": "y"})", "expected"));
}

TEST(Upgrade, LeavesOtherDocumentsAsTheyAre) {
  for (const char* text :
       {R"({"schema": "weir.result/2", "check": {"seconds": 1}})",
        R"({"schema": "weir.result/3", "check": {"seconds": 1}})",
        R"({"schema": "weir.result/", "check": {"seconds": 1}})",
        R"({"schema": "weir.watch/1", "check": {"seconds": 1}})", R"({"schema": "other/1", "check": {"seconds": 1}})",
        R"({"schema": 1, "check": {"seconds": 1}})", R"({"check": {"seconds": 1}})", R"([{"schema": "weir.result/1"}])",
        "7", "null"})
    EXPECT_EQ(upgraded(text), parse_json(text, "text")) << text;
}

TEST(Upgrade, SurvivesWhateverTheTypesAre) {
  EXPECT_TRUE(
      upgraded(R"({"schema": "weir.result/1", "check": {"seconds": 1e308}})")["check"]["duration_ns"].is_null());
  EXPECT_EQ(upgraded(R"({"schema": "weir.result/1", "check": {"seconds": "long"}})")["check"]["duration_ns"], "long");
  // A name that is taken keeps its value.
  const Json taken = upgraded(R"({"schema": "weir.result/1", "processes": [{"latency_ns": 3, "p50_ns": 4}],
    "check": {"duration_ns": 1, "seconds": 2}})");
  EXPECT_EQ(taken["processes"][0]["latency_ns"], 3);
  EXPECT_EQ(taken["check"]["duration_ns"], 1);
  for (const char* kind :
       {"result", "bench", "preempt", "analysis", "profile", "channel", "queues", "overlap", "trials", "amd_ftrace",
        "amd_log", "amd_hqd", "conformance", "comparison", "trace_comparison"})
    for (const char* value : {"3", "null", "\"x\"", "[]", "[[[1]], {}, null]", "{}", R"({"*": {"": [{}]}})"}) {
      std::string text = std::string(R"({"schema": "weir.)") + kind + R"(/1")";
      for (const char* name :
           {"processes", "check",      "ranks",    "metrics", "cases",   "ceilings", "alone",       "mechanisms",
            "devices",   "benchmarks", "settings", "pairs",   "kernels", "pace",     "plan",        "map",
            "sweep",     "switch",     "verbs",    "files",   "sysfs",   "queues",   "unavailable", "published"})
        text += std::string(", \"") + name + "\": " + value;
      EXPECT_EQ(upgraded((text + "}").c_str())["schema"], std::string("weir.") + kind + "/2");
    }
}

}  // namespace
}  // namespace weir
