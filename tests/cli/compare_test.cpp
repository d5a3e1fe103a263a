// Drives `weir compare` and `weir calibrate` as a user would: what is slower, what one process cannot say, what is
// known.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "kernel/random.h"
#include "support/text.h"
#include "weir_build.h"

namespace weir::testing {
namespace {

TEST(Compare, SameRunIsTheSame) {
  const Folder folder;
  ASSERT_EQ(weir({"run", "tiny_kernel_stress", "--device", "cpu", "--scale", "tiny", "--iterations", "40", "-o",
                  folder / "a.json"})
                .code,
            0);
  // The file is real; its samples are replaced by independent ones, because what this machine measures is not the
  // point.
  Json quiet = read_json(folder / "a.json");
  for (const char* list : {"latency_ns", "interval_ns"})
    for (std::size_t i = 0; i < quiet["samples"][list].size(); ++i)
      quiet["samples"][list][i] = 1'000'000 + random_bits(7, i) % 20'000;
  // One process could not be judged.
  quiet["processes"] = Json::array();
  for (int i = 0; i < 5; ++i) quiet["processes"].push_back({{"samples", 8}, {"seed", i}, {"wall_ns", 1}});
  write_file(folder / "a.json", quiet.dump(), true);
  const Outcome same = weir({"compare", folder / "a.json", folder / "a.json"});
  EXPECT_EQ(same.code, 0) << same.out;

  // A copy whose every sample is twice as long is slower for certain.
  Json slow = read_json(folder / "a.json");
  for (const char* list : {"latency_ns", "interval_ns"})
    for (Json& sample : slow["samples"][list]) sample = sample.get<std::int64_t>() * 2;
  write_file(folder / "slow.json", slow.dump(), false);
  EXPECT_EQ(weir({"compare", folder / "a.json", folder / "slow.json"}).code, 3);
  EXPECT_EQ(weir({"compare", folder / "slow.json", folder / "a.json"}).code, 0);
  for (const char* format : {"--format=text", "--format=markdown", "--json"}) {
    const Outcome outcome = weir({"compare", folder / "a.json", folder / "slow.json", format});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_TRUE(has(outcome.out, "slower")) << outcome.out;
    write_file(folder / "comparison", outcome.out, true);
  }
  expect_valid_as(folder / "comparison", "weir.comparison.2.json");  // the last one is JSON
}

// Each kind by its own comparison: the document says which it was.
TEST(Compare, RecognisesWhatItIsGiven) {
  const Folder folder;
  const std::string old = WEIR_SOURCE_DIR "/tests/data/v0.1/";
  ASSERT_EQ(weir({"profile", "moe", "--device", "sim:h200", "--scale", "tiny", "-o", folder / "trace.json"}).code, 0);
  std::filesystem::create_directories(folder / "reports");
  std::filesystem::copy_file(old + "bench.json", folder / "reports/summary.json");
  const std::pair<std::string, const char*> kinds[] = {
      {old + "result.json", "weir.comparison/2"},
      {old + "sweep.json", "weir.comparison/2"},
      {old + "overlap.json", "weir.comparison/2"},
      {folder / "trace.json", "weir.trace_comparison/2"},
      {old + "bench.json", "weir.bench/2"},
      {folder / "reports", "weir.bench/2"},
      {old + "channel.json", "weir.channel/2"},
      {WEIR_SOURCE_DIR "/fuzz/seeds/amd_log/rocm63_level5.log", "weir.amd_compare/1"}};
  for (const auto& [path, schema] : kinds) {
    const Outcome outcome = weir({"compare", path, path, "--json"});
    EXPECT_EQ(outcome.code, 0) << path << ": " << outcome.err;
    if (outcome.code == 0) {
      EXPECT_EQ(parse_json(outcome.out, path)["schema"], schema) << path;
    }
    const Outcome text = weir({"compare", path, path});
    EXPECT_EQ(text.code, 0) << path << ": " << text.err;
    EXPECT_GT(text.out.size(), 100U) << path;
  }
  const Json bench = parse_json(weir({"compare", old + "bench.json", folder / "reports", "--json"}).out, "bench");
  EXPECT_TRUE(bench["regressions"].is_object());
  const Json channel =
      parse_json(weir({"compare", old + "channel.json", old + "channel.json", "--json"}).out, "channel");
  EXPECT_TRUE(channel["comparison"].is_object());
  const Outcome several = weir({"compare", folder / "trace.json", folder / "trace.json", folder / "trace.json"});
  EXPECT_EQ(several.code, 2);
  EXPECT_TRUE(has(several.err, "weir compare BASELINE TEST")) << several.err;
}

TEST(Calibrate, WhatItKeepsJudgesSingleProcesses) {
  const Folder folder;
  const std::string kept = folder / "state/calibration.json";
  // Below 8 samples serial dependence is not estimated, so a busy machine cannot break this.
  const std::vector<std::string> step = {"tiny_kernel_stress", "--device", "cpu", "--scale", "tiny",
                                         "--iterations",       "7"};
  std::vector<std::string> calibrate = {"calibrate", "--processes", "5", "-o", kept};
  calibrate.insert(calibrate.end(), step.begin(), step.end());
  const Outcome calibrated = weir(calibrate);
  ASSERT_EQ(calibrated.code, 0) << calibrated.err;
  EXPECT_TRUE(has(calibrated.out, "tiny_kernel_stress")) << calibrated.out;
  expect_valid_as(kept, "weir.calibration.1.json");
  const Json document = read_json(kept);
  ASSERT_EQ(document["steps"].size(), 1u);
  EXPECT_EQ(document["steps"][0]["processes"], 5);
  EXPECT_EQ(document["steps"][0]["key"]["workload"], "tiny_kernel_stress");

  for (const char* name : {"a.json", "b.json"}) {
    std::vector<std::string> run = {"run", "-o", folder / name};
    run.insert(run.end(), step.begin(), step.end());
    ASSERT_EQ(weir(run).code, 0);
  }
  const std::vector<std::string> compare = {"compare", folder / "a.json", folder / "b.json", "--json", "--calibration"};
  const auto compared = [&](const std::string& calibration) {
    std::vector<std::string> command = compare;
    command.push_back(calibration);
    return weir(command);
  };
  const Json known = Json::parse(compared(kept).out);
  EXPECT_TRUE(has(known["tests"][0]["pairs"][0]["notes"].dump(), "judged with a spread of")) << known.dump(1);
  EXPECT_FALSE(known["tests"][0]["pairs"][0]["metrics"]["latency"]["interval"].is_null());

  Json elsewhere = document;
  elsewhere["steps"][0]["machine"]["environment.cpus"] = "4711";
  write_file(folder / "elsewhere.json", elsewhere.dump(), false);
  const Outcome unknown = compared(folder / "elsewhere.json");
  EXPECT_EQ(unknown.code, 0);
  EXPECT_TRUE(has(unknown.out, "to settle it, run both sides as: weir run --device cpu") ||
              has(unknown.out, "to settle it, run both sides as: weir run tiny_kernel_stress"))
      << unknown.out;
  EXPECT_TRUE(has(unknown.out, "--processes 5")) << unknown.out;
  EXPECT_EQ(compared(folder / "absent.json").code, 2);
  EXPECT_EQ(compared(folder / "a.json").code, 2) << "another document";
  EXPECT_EQ(weir({"calibrate", "--processes", "2"}).code, 2);
  const Outcome simulated = weir({"calibrate", "--device", "sim:h200"});
  EXPECT_EQ(simulated.code, 2);
  EXPECT_TRUE(has(simulated.err, "simulated devices need no calibration")) << simulated.err;
  const Outcome homeless = run_program({"env", "-u", "HOME", "-u", "XDG_STATE_HOME", WEIR_BINARY, "calibrate"});
  EXPECT_EQ(homeless.code, 2);
  EXPECT_TRUE(has(homeless.err, "neither HOME nor XDG_STATE_HOME is set")) << homeless.err;
  EXPECT_EQ(weir({"calibrate", "-o", folder / "a.json"}).code, 2) << "not a calibration, and not overwritten";
}

TEST(Compare, ReadsAortaAndRefusesTheRest) {
  const Folder folder;
  std::ofstream(folder / "aorta.json")
      << R"({"workload_name": "tiny_kernel_stress", "stream_count": 4, "throughput": 1000.0,
    "latency_ms": {"p50": 1.0, "p95": 1.1, "p99": 1.2}, "iteration_times_ms": [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0]})";
  EXPECT_EQ(weir({"compare", folder / "aorta.json", folder / "aorta.json"}).code, 0);
  std::ofstream(folder / "cut.json") << R"({"schema": "weir.result/2", "stre)";
  std::ofstream(folder / "foreign.json") << R"({"hello": "world"})";
  for (const char* bad : {"cut.json", "foreign.json"})
    EXPECT_EQ(weir({"compare", folder / "aorta.json", folder / bad}).code, 2) << bad;
}

}  // namespace
}  // namespace weir::testing
