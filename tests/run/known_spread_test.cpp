// What is known of the spread between processes: kept, found again for the right machine and step, and read back.
#include "run/known_spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "run/pairing.h"
#include "support/gauss.h"
#include "support/text.h"

namespace weir {
namespace {

ResultPoint run_of(const std::string& workload, double latency_ns, bool is_host_bound) {
  ResultPoint point;
  point.key = {{"workload", workload}, {"streams", "8"}};
  point.device = "cuda:0";
  point.settings = {{"device.model", "NVIDIA H200"}, {"environment.cpus", "16"}, {"environment.kernel", "6.1"}};
  point.latency = {std::vector<double>(20, latency_ns), "ns", "", false};
  point.is_host_bound = is_host_bound;
  return point;
}

CalibratedStep step_of(const std::string& workload, double deviation, bool is_host_bound, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<ResultPoint> runs;
  for (int i = 0; i < 10; ++i)
    runs.push_back(run_of(workload, 1e6 * std::exp(deviation * gauss(random)), is_host_bound));
  return calibrated_step(pool_repeats(runs).at(0), "2026-11-18T04:00:00Z").value();
}

TEST(KnownSpread, is_found_by_step_and_else_by_kind) {
  std::vector<CalibratedStep> steps{step_of("short", 0.12, true, 1), step_of("shorter", 0.3, true, 2),
                                    step_of("long", 0.002, false, 3)};
  EXPECT_NEAR(steps[0].deviation, 0.12, 0.06);
  EXPECT_EQ(steps[0].processes, 10U);
  const auto spread = [&](const ResultPoint& point) { return find_spread(steps, point, point); };
  const auto same = spread(run_of("short", 2e6, true));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->deviation, steps[0].deviation);
  EXPECT_EQ(same->degrees, 9);
  EXPECT_EQ(same->source, "weir calibrate of 2026-11-18: 10 processes of short");
  EXPECT_EQ(spread(run_of("other", 2e6, true))->deviation, steps[1].deviation) << "the widest of its kind";
  EXPECT_EQ(spread(run_of("other", 2e6, false))->deviation, steps[2].deviation);
  EXPECT_TRUE(has(spread(run_of("other", 2e6, false))->source, "a step of the same kind"));
  ResultPoint unknown = run_of("other", 2e6, false);
  unknown.is_host_bound.reset();
  EXPECT_EQ(spread(unknown)->deviation, steps[1].deviation) << "the widest of all";
  for (const char* fact : {"device.model", "environment.cpus"}) {
    ResultPoint elsewhere = run_of("short", 2e6, true);
    elsewhere.settings[fact] = "another";
    EXPECT_FALSE(spread(elsewhere)) << fact;
    EXPECT_FALSE(find_spread(steps, run_of("short", 2e6, true), elsewhere)) << fact;
  }
  ResultPoint updated = run_of("short", 2e6, true);
  updated.settings["environment.kernel"] = "6.2";
  EXPECT_TRUE(spread(updated));

  const CalibratedStep again = step_of("short", 0.05, true, 4);
  remember(again, steps);
  EXPECT_EQ(steps.size(), 3U);
  EXPECT_EQ(spread(run_of("short", 2e6, true))->deviation, again.deviation);
}

TEST(KnownSpread, few_processes_are_not_enough) {
  std::vector<ResultPoint> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(run_of("short", 1e6 + i, true));
  EXPECT_FALSE(calibrated_step(pool_repeats(runs).at(0), ""));
  runs.push_back(run_of("short", 2e6, true));
  EXPECT_TRUE(calibrated_step(pool_repeats(runs).at(0), ""));
  runs.push_back(run_of("short", 0, true));
  EXPECT_FALSE(calibrated_step(pool_repeats(runs).at(0), "")) << "a median of 0";
}

TEST(KnownSpread, runs_of_a_history_count_by_their_neighbours) {
  SplitMix random(5);
  std::vector<double> medians;
  for (int i = 0; i < 60; ++i) medians.push_back(1e6 * (i < 30 ? 1 : 1.1) * std::exp(0.02 * gauss(random)));
  const auto spread = spread_of_runs(medians, "60 runs");
  ASSERT_TRUE(spread);
  EXPECT_NEAR(spread->deviation, 0.02, 0.008) << "the step in the middle hardly counts";
  EXPECT_NEAR(spread->degrees, 39.3, 0.1);
  EXPECT_FALSE(spread_of_runs(std::vector<double>{1, 2, 3, 4}, ""));
}

TEST(KnownSpread, a_document_is_read_back_and_others_are_rejected) {
  const std::filesystem::path folder = ::testing::TempDir();
  const std::filesystem::path file = folder / "known_spread_test.json";
  std::filesystem::remove(file);
  EXPECT_TRUE(load_calibration(file).empty()) << "nothing is known yet";
  const std::vector<CalibratedStep> steps{step_of("short", 0.12, true, 1), step_of("long", 0.002, false, 3)};
  std::ofstream(file) << calibration_json(steps).dump();
  const std::vector<CalibratedStep> read = load_calibration(file);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].key, steps[0].key);
  EXPECT_EQ(read[0].machine, steps[0].machine);
  EXPECT_EQ(read[0].deviation, steps[0].deviation);
  EXPECT_EQ(read[1].is_host_bound, false);
  EXPECT_EQ(read[1].measured, "2026-11-18T04:00:00Z");
  for (const char* bad : {"{}", "[]", R"({"schema": "weir.calibration/1", "steps": [{"machine": {}, "key": {}}]})",
                          R"({"schema": "weir.calibration/1", "steps": [{"machine": {}, "key": {}, "processes": 0,
                              "deviation": 1, "latency_ns": 1}]})"}) {
    std::ofstream(file) << bad;
    EXPECT_THROW(load_calibration(file), Error) << bad;
  }
}

}  // namespace
}  // namespace weir
