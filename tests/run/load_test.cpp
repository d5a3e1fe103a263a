// What the loader accepts, what it says about the rest, and that hostile files raise nothing but weir::Error.
#include "run/load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>

#include "base/error.h"
#include "measure/bootstrap.h"
#include "run/pairing.h"
#include "support/text.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

Json weir_result() {
  return Json::parse(R"({
    "schema": "weir.result/2", "status": "complete", "created": "2026-01-31T12:00:00Z",
    "weir": {"version": "0.1.0", "commit": "abc"}, "command_line": ["weir", "run"],
    "workload": {"name": "moe", "category": "distributed", "priority": "P1", "unit": "tokens/s", "scaling": "divided"},
    "parameters": {"hidden": 1024, "skew": 0.5, "order": "alternating", "gated": true, "sizes": [1, 2]},
    "precision": "fp32", "scale": "small", "streams": 8, "submit": "inline", "placement": "natural",
    "sync_mode": "per_iteration", "iterations": 4, "warmup": 1, "seed": 1,
    "device": {"name": "cuda:0", "backend": "cuda", "model": "H200", "hw_queues": 8},
    "environment": {"driver": "550.1", "variables": {"CUDA_DEVICE_MAX_CONNECTIONS": "32"}},
    "work_per_iteration": 2048.0,
    "samples": {"latency_ns": [1000, 1100.5, 1200, 900], "interval_ns": [1024, 2048, 1024, 512], "device_ns": null,
                "submit_ns": [10, 11, 12, 13]},
    "metrics": {"latency_ns": null, "throughput": {"value": 1.0, "unit": "tokens/s"}},
    "check": {"status": "passed"}, "warnings": [], "unavailable": {"samples.device_ns": "cpu"}
  })");
}

Json aorta_result() {
  return Json::parse(R"({
    "throughput": 500.0, "throughput_unit": "samples/sec", "latency_ms": {"mean": 2.0, "p50": 2.0, "p95": 3.0, "p99": 3.0},
    "total_time_ms": 8.0, "stream_count": 4, "per_stream_times_ms": [], "iteration_times_ms": [1.0, 2.0, 2.0, 3.0],
    "switch_latency": null, "workload_name": "moe", "timestamp": "2026-01-31T12:00:00",
    "metadata": {"config": {"stream_count": 4, "sync_mode": "per_iteration", "device": "cuda:0"},
                 "device_info": {"name": "AMD Instinct MI300X"}, "driver_info": {"driver_version": "6.8"}}
  })");
}

// The message and hint of the rejection, or "" where nothing was rejected.
std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    return std::string(error.what()) + " | " + error.hint;
  }
  return {};
}

std::string complaint(const Json& json) {
  return complaint([&] { parse_results(json, "a.json"); });
}

TEST(Load, SamplesBelongToProcesses) {
  Json result = weir_result();
  EXPECT_TRUE(parse_results(result, "a.json").points[0].latency.processes.empty()) << "one process";
  result["processes"] = Json::parse(R"([{"samples": 1, "seed": 1, "wall_ns": 5}, {"samples": 3, "seed": 2}])");
  const ResultPoint point = parse_results(result, "a.json").points[0];
  EXPECT_EQ(point.latency.processes, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(point.throughput.processes, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(point.is_host_bound, false);
  EXPECT_EQ(point.command, (std::vector<std::string>{"weir", "run"}));
  // Of a metric that each process has once.
  result["processes"] = Json::parse(R"([{"samples": 60}, {"samples": 60}])");
  EXPECT_EQ(parse_results(result, "a.json").points[0].latency.processes, (std::vector<std::size_t>{2, 2}));
  result["processes"][1]["samples"] = 30;
  EXPECT_TRUE(has(complaint(result), "the sizes of 2 processes do not add up to 4 samples")) << "not two each";
  result["processes"][1]["samples"] = 60;
  result["samples"]["submit_ns"] = {900, 900, 900, 900};
  EXPECT_EQ(parse_results(result, "a.json").points[0].is_host_bound, true);
  result["processes"].push_back({{"samples", 60}});
  EXPECT_TRUE(has(complaint(result), "the sizes of 3 processes do not add up to 4 samples"));
  for (const char* bad : {"3", R"(["x"])", R"([{"samples": -1}])", R"([{"samples": 1.5}])", R"([{}])"}) {
    result["processes"] = Json::parse(bad);
    EXPECT_FALSE(complaint(result).empty()) << bad;
  }
  // A pooled run keeps its processes.
  result["processes"] = Json::parse(R"([{"samples": 1}, {"samples": 3}])");
  Json other = weir_result();
  other["samples"]["latency_ns"] = {5, 6, 7, 8};
  std::vector<ResultPoint> both = parse_results(result, "a.json").points;
  both.push_back(parse_results(other, "b.json").points[0]);
  EXPECT_EQ(pool_repeats(both).at(0).latency.processes, (std::vector<std::size_t>{1, 3, 4}));
}

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("weir_load_test_" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(Load, ReadsAResult) {
  const ResultFile file = parse_results(weir_result(), "a.json");
  ASSERT_EQ(file.points.size(), 1U);
  const ResultPoint& point = file.points[0];
  EXPECT_TRUE(point.is_key_complete);
  const std::map<std::string, std::string> expected{
      {"workload", "moe"},     {"streams", "8"},       {"submit", "inline"},           {"placement", "natural"},
      {"precision", "fp32"},   {"param.skew", "0.5"},  {"sync_mode", "per_iteration"}, {"param.hidden", "1024"},
      {"param.gated", "true"}, {"param.sizes", "1,2"}, {"param.order", "alternating"}, {"ranks", "1"}};
  EXPECT_EQ(point.key, expected);
  EXPECT_EQ(point.device, "cuda:0");
  EXPECT_EQ(point.failure, "");
  EXPECT_EQ(point.latency.samples, (std::vector<double>{1000, 1100.5, 1200, 900}));
  EXPECT_EQ(point.throughput.samples, (std::vector<double>{2e9, 1e9, 2e9, 4e9}));
  EXPECT_EQ(point.throughput.unit, "tokens/s");
  EXPECT_EQ(point.settings.at("device.hw_queues"), "8");
  EXPECT_EQ(point.settings.at("environment.variables.CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  EXPECT_EQ(point.settings.at("weir.version"), "0.1.0");
}

TEST(Load, RankCountsKeepPointsApart) {
  Json json = weir_result();
  json["ranks"] = {{"count", 4}};
  const ResultPoint four = parse_results(json, "a.json").points[0];
  json["ranks"] = nullptr;
  const ResultPoint one = parse_results(json, "a.json").points[0];
  EXPECT_EQ(four.key.at("ranks"), "4");
  EXPECT_EQ(one.key.at("ranks"), "1");
  const auto differences = key_differences(four, one);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].name, "ranks");
  EXPECT_NE(label_of(four, {}).find(", 4 ranks"), std::string::npos) << label_of(four, {});
}

TEST(Load, EqualNumbersAreEqualParameters) {
  Json json = weir_result();
  json["parameters"]["hidden"] = 1024.0;
  EXPECT_EQ(parse_results(json, "a.json").points[0].key.at("param.hidden"), "1024");
}

TEST(Load, SaysWhyAMetricIsMissing) {
  Json json = weir_result();
  json["sync_mode"] = "none";
  json["samples"]["latency_ns"] = nullptr;
  json["samples"]["interval_ns"] = nullptr;
  json["unavailable"]["metrics.latency_ns"] = "sync mode none waits for nothing";
  const ResultPoint point = parse_results(json, "a.json").points[0];
  EXPECT_EQ(point.latency.reason, "sync mode none waits for nothing");
  EXPECT_TRUE(point.latency.is_expected_missing);
  EXPECT_TRUE(has(point.throughput.reason, "only one total throughput"));

  json = weir_result();
  json["work_per_iteration"] = nullptr;
  EXPECT_TRUE(has(parse_results(json, "a.json").points[0].throughput.reason, "work per iteration"));
  json = weir_result();
  json["samples"]["interval_ns"][1] = 0;
  EXPECT_TRUE(has(parse_results(json, "a.json").points[0].throughput.reason, "0 ns"));
}

TEST(Load, FailedRunsNeedNoSamples) {
  Json json = weir_result();
  json["status"] = "failed";
  json["failure"] = "out of memory";
  json["samples"] = nullptr;
  EXPECT_EQ(parse_results(json, "a.json").points[0].failure, "the run failed: out of memory");
  json = weir_result();
  json["check"]["status"] = "failed";
  EXPECT_EQ(parse_results(json, "a.json").points[0].failure, "its output is wrong");
  json = weir_result();
  json["status"] = "interrupted";
  EXPECT_TRUE(has(parse_results(json, "a.json").points[0].notes.at(0), "interrupted: judged on 4"));
}

TEST(Load, ReadsASweep) {
  Json json{{"schema", "weir.sweep/1"}, {"results", Json::array({weir_result(), weir_result()})}};
  json["results"][1]["streams"] = 16;
  const ResultFile file = parse_results(json, "s.json");
  ASSERT_EQ(file.points.size(), 2U);
  EXPECT_EQ(file.points[1].origin, "s.json: results[1]");
  json["results"][1]["streams"] = "many";
  EXPECT_TRUE(has(complaint(json), "results[1].streams: expected a number, found string"));
  json["results"][1] = aorta_result();
  EXPECT_TRUE(has(complaint(json), "results[1]: expected weir.result/2"));
  json["results"] = Json::array();
  EXPECT_TRUE(has(complaint(json), "holds no results"));
}

TEST(Load, ReadsAorta) {
  const ResultPoint point = parse_results(aorta_result(), "a.json").points[0];
  EXPECT_FALSE(point.is_key_complete);
  EXPECT_EQ(point.key, (std::map<std::string, std::string>{
                           {"workload", "moe"}, {"streams", "4"}, {"sync_mode", "per_iteration"}}));
  EXPECT_EQ(point.latency.samples, (std::vector<double>{1e6, 2e6, 2e6, 3e6}));
  // 500/s over a mean of 2 ms: one unit of work per iteration.
  ASSERT_EQ(point.throughput.samples.size(), 4U);
  EXPECT_DOUBLE_EQ(point.throughput.samples[0], 1000);
  EXPECT_DOUBLE_EQ(point.throughput.samples[1], 500);
  EXPECT_TRUE(has(point.notes.at(0), "derived from iteration_times_ms"));
  EXPECT_EQ(point.settings.at("device.model"), "AMD Instinct MI300X");

  Json sweep{{"timestamp", "x"}, {"workload", "hetero_kernels"}, {"results", Json::array({aorta_result()})}};
  sweep["results"][0].erase("workload_name");
  EXPECT_EQ(parse_results(sweep, "a.json").points[0].key.at("workload"), "hetero_kernels");

  Json bare = aorta_result();
  bare.erase("iteration_times_ms");
  EXPECT_TRUE(has(parse_results(bare, "a.json").points[0].throughput.reason, "cannot be tested"));
  Json pipelined = aorta_result();
  pipelined["metadata"]["config"]["sync_mode"] = "end_only";
  EXPECT_TRUE(has(parse_results(pipelined, "a.json").points[0].latency.reason, "enqueue time"));
}

TEST(Load, NamesWhatIsWrong) {
  Json json = weir_result();
  json["schema"] = "weir.result/10";
  EXPECT_TRUE(has(complaint(json), "newer Weir: this one reads version 2"));
  json["schema"] = "weir.timeline/1";
  EXPECT_TRUE(has(complaint(json), "schema 'weir.timeline/1'"));
  json["schema"] = 7;
  EXPECT_TRUE(has(complaint(json), "schema that is not a text"));
  EXPECT_TRUE(has(complaint(Json::array()), "array instead of an object"));
  EXPECT_TRUE(has(complaint(Json::parse(R"({"traceEvents": []})")), "found a trace"));
  EXPECT_TRUE(has(complaint(Json::parse(R"({"events": []})")), "without schema (it has events)"));
  EXPECT_TRUE(has(complaint(Json::object()), "an empty object"));
  EXPECT_TRUE(has(complaint(Json::object()), "weir.result/2"));

  json = weir_result();
  json["samples"]["latency_ns"][2] = -5;
  EXPECT_TRUE(has(complaint(json), "samples.latency_ns[2]: expected a duration, found -5"));
  json["samples"]["latency_ns"][2] = "fast";
  EXPECT_TRUE(has(complaint(json), "samples.latency_ns[2]: expected a duration, found string"));
  json["samples"]["latency_ns"] = 3;
  EXPECT_TRUE(has(complaint(json), "expected a list of durations"));
  json = weir_result();
  json["streams"] = 0;
  EXPECT_TRUE(has(complaint(json), "expected a stream count, found 0"));
  json = weir_result();
  json["workload"].erase("name");
  EXPECT_TRUE(has(complaint(json), "workload.name: expected a text, it is missing"));
  json = weir_result();
  json["status"] = "fine";
  EXPECT_TRUE(has(complaint(json), "status 'fine'"));
  json = weir_result();
  json.erase("samples");
  EXPECT_TRUE(has(complaint(json), "samples: expected an object, it is missing"));
  json = weir_result();
  json["parameters"]["hidden"] = Json::object();
  EXPECT_TRUE(has(complaint(json), "parameters.hidden"));
}

TEST(Load, FilesAndFolders) {
  const Folder folder;
  EXPECT_TRUE(has(complaint([&] { load_results(folder.path() / "none.json"); }), "none.json"));
  EXPECT_TRUE(has(complaint([&] { load_results(folder.path()); }), "holds no results (0 .json files)"));
  folder.write("a.json", weir_result().dump());
  folder.write("notes.txt", "not JSON");
  folder.write("c.json", R"({"schema": "weir.comparison/2"})");
  const ResultFile file = load_results(folder.path());
  EXPECT_EQ(file.points.size(), 1U);
  ASSERT_EQ(file.notes.size(), 1U);
  EXPECT_TRUE(has(file.notes[0], "passed over"));
  const std::string text = weir_result().dump();
  const fs::path cut = folder.write("b.json", text.substr(0, text.size() / 2));
  EXPECT_TRUE(has(complaint([&] { load_results(cut); }), "truncated"));
  EXPECT_TRUE(has(complaint([&] { load_results(folder.path()); }), "b.json"));
  EXPECT_TRUE(has(complaint([&] { load_results(folder.write("n.json", R"({"schema": NaN})")); }), "not valid JSON"));
  EXPECT_TRUE(has(complaint([&] { load_results(folder.write("h.json", R"({"throughput": 1e999})")); }), "h.json"));
}

TEST(Load, DeepNestingAndHugeArrays) {
  std::string deep = weir_result().dump();
  const std::string nest(50'000, '[');
  const std::string close(50'000, ']');
  const Folder folder;
  for (const std::string member : {"\"hidden\":1024", "\"driver\":\"550.1\"", "\"status\":\"complete\""}) {
    std::string text = deep;
    const std::string name = member.substr(0, member.find(':') + 1);
    std::string deeper = name;
    deeper.append(nest).append(close);
    text.replace(text.find(member), member.size(), deeper);
    const fs::path path = folder.write("deep.json", text);
    EXPECT_TRUE(has(complaint([&] { load_results(path); }), "nested"));
  }
  // Objects inside objects take another way through the loader than arrays; these are just shallow enough.
  std::string objects;
  for (int i = 0; i < 90; ++i) objects += "{\"a\":";
  deep.replace(deep.find("\"550.1\""), 7, objects + "1" + std::string(90, '}'));
  EXPECT_EQ(load_results(folder.write("objects.json", deep)).points.size(), 1U);
  // Brackets inside texts do not count.
  Json texts = weir_result();
  texts["environment"]["driver"] = std::string(500, '[') + "\"\\" + std::string(500, '{');
  EXPECT_EQ(load_results(folder.write("texts.json", texts.dump())).points.size(), 1U);

  Json large = weir_result();
  large["samples"]["latency_ns"] = std::vector<double>(500'000, 5.0);
  EXPECT_EQ(parse_results(large, "a.json").points[0].latency.samples.size(), 500'000U);
}

// All places in a document, by reference; changed one or several at a time.
void collect(Json& json, std::vector<Json*>& places) {
  places.push_back(&json);
  if (json.is_structured())
    for (Json& inner : json) collect(inner, places);
}

Json odd_value(SplitMix& random) {
  switch (random.below(14)) {
    case 0:
      return nullptr;
    case 1:
      return true;
    case 2:
      return -1;
    case 3:
      return 0;
    case 4:
      return 1e308;
    case 5:
      return std::numeric_limits<double>::quiet_NaN();
    case 6:
      return std::numeric_limits<double>::infinity();
    case 7:
      return "";
    case 8:
      return "weir.result/2";
    case 9:
      return Json::array();
    case 10:
      return Json::object();
    case 11:
      return Json::array({1, "two", nullptr, Json::array({3})});
    case 12:
      return Json{{"name", 3}, {"results", Json::array({Json::object()})}};
    default:
      return std::numeric_limits<std::uint64_t>::max();
  }
}

TEST(Load, MutationsRaiseNothingButErrors) {
  SplitMix random(1234);
  const std::vector<Json> seeds{weir_result(), aorta_result(),
                                Json{{"schema", "weir.sweep/1"}, {"results", Json::array({weir_result()})}},
                                Json{{"workload", "moe"}, {"results", Json::array({aorta_result(), aorta_result()})}}};
  int accepted = 0;
  int rejected = 0;
  for (int round = 0; round < 20'000; ++round) {
    Json json = seeds[random.below(static_cast<std::uint32_t>(seeds.size()))];
    for (std::uint32_t change = 0; change <= random.below(3); ++change) {
      std::vector<Json*> places;
      collect(json, places);
      Json& place = *places[random.below(static_cast<std::uint32_t>(places.size()))];
      if (random.below(3) == 0 && place.is_object() && !place.empty())
        place.erase(place.begin().key());
      else
        place = odd_value(random);
    }
    try {
      const ResultFile file = parse_results(json, "a.json");
      ++accepted;
      for (const ResultPoint& point : file.points)
        for (const SampleSeries* series : {&point.latency, &point.throughput}) {
          ASSERT_EQ(series->samples.empty(), !series->reason.empty());
          for (const double sample : series->samples) ASSERT_TRUE(sample >= 0 && std::isfinite(sample));
        }
    } catch (const Error& error) {
      ASSERT_EQ(error.fault, Fault::input);
      ++rejected;
    }
  }
  EXPECT_GT(accepted, 1'000);
  EXPECT_GT(rejected, 1'000);
}

// Bytes this time: cut, doubled or replaced anywhere.
TEST(Load, BrokenTextRaisesNothingButErrors) {
  SplitMix random(77);
  const Folder folder;
  const std::string whole = weir_result().dump();
  for (int round = 0; round < 300; ++round) {
    std::string text = whole;
    for (std::uint32_t change = 0; change <= random.below(4); ++change)
      text[random.below(static_cast<std::uint32_t>(text.size()))] = static_cast<char>(random.below(256));
    if (random.below(3) == 0) text.resize(random.below(static_cast<std::uint32_t>(text.size())));
    const fs::path path = folder.write("broken.json", text);
    try {
      load_results(path);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace weir
