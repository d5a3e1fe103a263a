// What processes found and what it amounts to; documents that read back as what they were made of; files of any origin.
#include "lab/channels/channel_results.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "lab/channels/channel_baseline.h"
#include "lab/channels/channel_document.h"
#include "run/channel_testing.h"

namespace weir::testing {
namespace {

using channel_bench::Measurement;
using channel_bench::Unit;

TEST(ChannelSummary, IsTheMedianOverProcessesOfTheirMedians) {
  // Ten wild samples of one process are one process.
  ChannelResult result = channel_result("g/n/spsc", {{1, 2, 3}, {4, 4, 9}, {100, 100, 100, 100, 100, 100, 100, 100}});
  result.measurements[0].found.p99_ns = 10;
  result.measurements[1].found.p99_ns = 30;
  result.measurements[0].found.facts = {{"parks", 1}};
  result.measurements[2].found.facts = {{"parks", 3}, {"missed", 7}};
  const ChannelSummary summary = summarise(result);
  EXPECT_EQ(summary.medians, (std::vector<double>{2, 4, 100}));
  EXPECT_EQ(summary.value, 4);
  EXPECT_EQ(summary.low, 2);
  EXPECT_EQ(summary.high, 100);
  EXPECT_EQ(summary.p99_ns, 20);
  EXPECT_FALSE(summary.p50_ns);
  EXPECT_EQ(summary.sent, 14u);
  EXPECT_EQ(summary.facts, (std::vector<std::pair<std::string, double>>{{"parks", 2}, {"missed", 7}}));
}

TEST(ChannelSummary, FailuresAreCountedAndTheirSamplesAreNot) {
  ChannelResult result = channel_result("g/n/spsc", {{1}, {2}, {3}});
  result.measurements[2].found.failure = "999 of 1000 commands arrived";
  const ChannelSummary summary = summarise(result);
  EXPECT_EQ(summary.failures, 1);
  EXPECT_EQ(summary.failure, "999 of 1000 commands arrived");
  EXPECT_EQ(summary.medians.size(), 2u);
  EXPECT_FALSE(summarise(ChannelResult{}).value);
}

TEST(ChannelMeasurement, ReadsBackAsItself) {
  Measurement measurement;
  measurement.samples = {1.5, 2.5e9};
  measurement.p50_ns = 3;
  measurement.sent = UINT64_MAX;
  measurement.received = 7;
  measurement.is_checksum_right = false;
  measurement.failure = "7 of 8 \"commands\"\n arrived";
  measurement.facts = {{"a", 1.25}, {"b", -3}};
  const Measurement again = measurement_from(parse_json(to_json(measurement).dump(), "x"), "x");
  EXPECT_EQ(again.samples, measurement.samples);
  EXPECT_EQ(again.p50_ns, measurement.p50_ns);
  EXPECT_FALSE(again.p99_ns);
  EXPECT_EQ(again.sent, measurement.sent);
  EXPECT_EQ(again.received, measurement.received);
  EXPECT_EQ(again.is_checksum_right, false);
  EXPECT_EQ(again.failure, measurement.failure);
  EXPECT_EQ(again.facts, measurement.facts);
}

TEST(ChannelMeasurement, WithoutSamplesOrFailureIsAFailure) {
  EXPECT_EQ(measurement_from(to_json(Measurement{}), "x").failure, "it took no samples");
}

Json document() {
  ChannelReport report;
  report.run = channel_run({channel_result("round_trip/one_line/spsc", {{210, 220}, {230, 240}}),
                            channel_result("throughput/10/spsc", {{1e6, 2e6}}, Unit::per_second)});
  report.capacity_asked = 1000;
  report.run.results.push_back(channel_result("kernel_latency/a/spsc", {}));
  report.run.results.back().unavailable = "no GPU";
  report.run.results[1].target = channel_bench::Target{5e5, "> 500 k/s"};
  return channel_document(report, {});
}

TEST(ChannelBaseline, ReadsWhatADocumentHolds) {
  const ChannelRun run = parse_channel_run(parse_json(document().dump(), "x"), "x");
  ASSERT_EQ(run.results.size(), 3u);
  EXPECT_EQ(run.results[0].id(), "round_trip/one_line/spsc");
  EXPECT_EQ(summarise(run.results[0]).medians, (std::vector<double>{215, 235}));
  EXPECT_EQ(run.results[1].unit, Unit::per_second);
  EXPECT_EQ(run.results[2].unavailable, "no GPU");
  EXPECT_EQ(run.settings.conditions.cores, (std::vector<int>{0, 1}));
  EXPECT_EQ(run.settings.conditions.capacity, 1024u);
  EXPECT_EQ(run.settings.processes, 5);
}

TEST(ChannelBaseline, WhateverIsWrongIsRejectedByName) {
  const std::vector<std::pair<std::string, std::function<void(Json&)>>> breakages = {
      {"is not a document", [](Json& json) { json = Json::array(); }},
      {"no schema", [](Json& json) { json.erase("schema"); }},
      {"weir.result/2", [](Json& json) { json["schema"] = "weir.result/2"; }},
      {"'benchmarks' is missing", [](Json& json) { json.erase("benchmarks"); }},
      {"'benchmarks' must be a list", [](Json& json) { json["benchmarks"] = 7; }},
      {"an object is needed", [](Json& json) { json["benchmarks"][0] = nullptr; }},
      {"there twice", [](Json& json) { json["benchmarks"].push_back(json["benchmarks"][0]); }},
      {"unknown unit 'ms'", [](Json& json) { json["benchmarks"][0]["unit"] = "ms"; }},
      {"'is_ours'", [](Json& json) { json["benchmarks"][0]["is_ours"] = 1; }},
      {"too long for a name", [](Json& json) { json["benchmarks"][0]["group"] = std::string(10'000, 'x'); }},
      {"not a positive number", [](Json& json) { json["benchmarks"][0]["processes"][0]["samples"][0] = 0; }},
      {"not a positive number", [](Json& json) { json["benchmarks"][0]["processes"][0]["samples"][0] = "1"; }},
      {"'samples' must be a list", [](Json& json) { json["benchmarks"][0]["processes"][0]["samples"] = 1; }},
      {"'sent' must be", [](Json& json) { json["benchmarks"][0]["processes"][0]["sent"] = -1; }},
      {"'process' must be", [](Json& json) { json["benchmarks"][0]["processes"][0]["process"] = 1e18; }},
      {"'process' is missing", [](Json& json) { json["benchmarks"][0]["processes"][0].erase("process"); }},
      {"'cores'", [](Json& json) { json["settings"]["cores"] = {-1}; }},
      {"'settings' is missing", [](Json& json) { json.erase("settings"); }},
      {"an object is needed", [](Json& json) { json["settings"] = 3; }},
      {"'environment'", [](Json& json) { json["environment"] = "x"; }},
      {"'created'", [](Json& json) { json["created"] = 1; }},
  };
  for (const auto& [message, break_it] : breakages) {
    Json json = document();
    break_it(json);
    try {
      parse_channel_run(parse_json(json.dump(), "file"), "file");
      ADD_FAILURE() << "accepted: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what() << " for " << message;
      EXPECT_TRUE(std::string(error.what()).starts_with("file")) << error.what();
    }
  }
}

TEST(ChannelBaseline, NamesArePlainFileNames) {
  EXPECT_EQ(baseline_file("d", "--baseline", "main"), "d/main.json");
  EXPECT_EQ(baseline_file("d", "--baseline", "v1.2-rc_3"), "d/v1.2-rc_3.json");
  for (const char* name : {"", ".", "..", "../x", "a/b", "-o", "a b", "a\n", "\xc3\xa4"})
    EXPECT_THROW(baseline_file("d", "--baseline", name), Error) << name;
  EXPECT_THROW(baseline_file("d", "--baseline", std::string(300, 'a')), Error);
}

}  // namespace
}  // namespace weir::testing
