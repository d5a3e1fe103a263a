// Soaks: bounded samples that cover all iterations evenly, drift that outliers do not fake, alarms, and early ends.
#include "run/soak.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "base/error.h"
#include "run/tiny_request.h"

namespace weir {
namespace {

TEST(SoakSamples, AreBoundedAndCoverEverythingEvenly) {
  constexpr std::size_t kMost = 64;
  constexpr int kAdded = 10'000;
  SoakSamples samples(kMost, 7);
  for (int i = 0; i < kAdded; ++i) samples.add({.begun_ns = static_cast<double>(i)});
  const auto kept = samples.kept();
  EXPECT_LE(kept.size(), kMost);
  EXPECT_GE(kept.size(), kMost / 2 - 1);
  EXPECT_EQ(samples.stride(), 256u);
  for (std::size_t i = 0; i < kept.size(); ++i)  // one of each block, in order
    EXPECT_EQ(static_cast<std::size_t>(kept[i].begun_ns) / samples.stride(), i);
}

TEST(SoakSamples, KeepAllWhileThereIsRoom) {
  SoakSamples samples(64, 7);
  for (int i = 0; i < 63; ++i) samples.add({.begun_ns = static_cast<double>(i)});
  ASSERT_EQ(samples.kept().size(), 63u);
  EXPECT_EQ(samples.kept()[62].begun_ns, 62);
}

TEST(SoakSamples, SeeEveryPhaseOfAPeriod) {
  // Every fourth iteration is slow; taking every 2^n-th one would see none, or only those.
  SoakSamples samples(256, 3);
  for (int i = 0; i < 100'000; ++i) samples.add({.latency_ns = i % 4 == 0 ? 2.0 : 1.0});
  double slow = 0;
  for (const SoakSample& each : samples.kept()) slow += each.latency_ns == 2.0 ? 1 : 0;
  const double share = slow / static_cast<double>(samples.kept().size());
  EXPECT_GT(share, 0.1);
  EXPECT_LT(share, 0.4);
}

TEST(RobustChange, FindsASlopeAndIgnoresAnOutlier) {
  std::vector<double> times, rising, flat;
  for (int i = 0; i < 20; ++i) {
    times.push_back(i);
    rising.push_back(100 + i);
    flat.push_back(100 + (i % 2 == 0 ? 0.5 : -0.5));
  }
  rising[4] = 1e6;
  flat[19] = 1e6;
  const auto up = robust_change(times, rising), none = robust_change(times, flat);
  ASSERT_TRUE(up && none);
  EXPECT_NEAR(up->value, 19, 0.5);
  EXPECT_GT(up->interval.low, 15);
  EXPECT_LE(none->interval.low, 0);
  EXPECT_GE(none->interval.high, 0);
  EXPECT_LT(std::fabs(none->value), 1);
  EXPECT_FALSE(robust_change(std::span(times).first(7), std::span(flat).first(7)));
}

// A soak as it would be after the pass: 30 windows of one second, ten iterations each.
struct Planted {
  Soak soak;
  TimedPass pass;
};
template <class Latency, class Reading>
Planted planted(Latency latency, Reading reading) {
  Planted planted;
  planted.soak.asked_ns = 30'000'000'000;
  planted.soak.elapsed_ns = 30e9;
  for (int w = 0; w < kSoakWindows; ++w) {
    SoakWindow window{.started_ns = w * 1e9, .ended_ns = (w + 1) * 1e9, .iterations = 10};
    window.telemetry = reading(w);
    planted.soak.windows.push_back(window);
    for (int i = 0; i < 10; ++i) {
      planted.soak.begun_ns.push_back(w * 1e9 + i * 1e8);
      planted.pass.latency_ns.push_back(latency(w, i));
      ++planted.soak.iterations;
    }
  }
  return planted;
}

std::vector<std::string> alarms_of(Planted planted) {
  Result result;
  add_soak(result, planted.pass, planted.soak);
  std::vector<std::string> codes;
  for (const Json& alarm : result.metrics["soak"]["alarms"]) codes.push_back(alarm["code"].get<std::string>());
  EXPECT_EQ(result.warnings.size(), codes.size());
  return codes;
}

constexpr auto kSteady = [](int, int i) { return 1e6 + i; };
constexpr auto kSilent = [](int) { return Telemetry{}; };

TEST(SoakAlarms, NoneWhereNothingChanges) {
  EXPECT_TRUE(alarms_of(planted(kSteady, kSilent)).empty());
  EXPECT_TRUE(
      alarms_of(planted(kSteady, [](int) { return Telemetry{.clock_mhz = 1700, .temperature_c = 60}; })).empty());
  // One bad iteration in each window, and one bad window.
  EXPECT_TRUE(alarms_of(planted([](int w, int i) { return i == 0 || w == 29 ? 9e6 : 1e6; }, kSilent)).empty());
}

TEST(SoakAlarms, LatencyThatGrowsOrShrinks) {
  for (const double sign : {1.0, -1.0})
    EXPECT_EQ(alarms_of(planted([&](int w, int i) { return 1e6 + sign * w * 5e3 + i; }, kSilent)),
              std::vector<std::string>{"soak_latency_drift"});
}

TEST(SoakAlarms, HeatClocksAndThrottling) {
  EXPECT_EQ(alarms_of(planted(kSteady, [](int w) { return Telemetry{.temperature_c = 50.0 + w}; })),
            std::vector<std::string>{"soak_temperature"});
  EXPECT_TRUE(
      alarms_of(planted(kSteady, [](int w) { return Telemetry{.temperature_c = std::min(65.0, 50.0 + 2 * w)}; }))
          .empty())
      << "it has settled";
  EXPECT_EQ(alarms_of(planted(kSteady, [](int w) { return Telemetry{.clock_mhz = w < 15 ? 1700 : 1400}; })),
            std::vector<std::string>{"soak_clock"});
  EXPECT_EQ(alarms_of(planted(kSteady,
                              [](int w) {
                                Telemetry reading{.temperature_c = 80};
                                if (w > 20) reading.throttle = {"too hot"};
                                return reading;
                              })),
            std::vector<std::string>{"soak_throttled"});
}

TEST(SoakAlarms, WhatIsNotReportedHasAReason) {
  Planted quiet = planted(kSteady, kSilent);
  Result result;
  add_soak(result, quiet.pass, quiet.soak);
  for (const char* const name : {"temperature_c", "clock_mhz", "throttled_share"}) {
    EXPECT_TRUE(result.metrics["soak"][name].is_null()) << name;
    EXPECT_TRUE(result.unavailable.contains("metrics.soak." + std::string(name))) << name;
  }
}

TEST(Soak, RunsForAsLongAsAsked) {
  const auto device = open_device("cpu", {});
  RunRequest request = tiny("tiny_kernel_stress");
  request.duration_ns = 300'000'000;
  const Result result = run_workload(*device, request, {}, {});
  EXPECT_EQ(result.status, "complete") << result.failure;
  EXPECT_EQ(result.check["status"], "passed");
  const Json& soak = result.metrics["soak"];
  EXPECT_GE(soak["elapsed_ns"].get<double>(), 300e6);
  EXPECT_GE(soak["iterations"].get<int>(), 1);
  ASSERT_TRUE(result.samples.latency_ns);
  EXPECT_EQ(result.samples.latency_ns->size(), result.samples.interval_ns->size());
  std::uint64_t iterations = 0;
  for (const Json& window : soak["windows"]) iterations += window["iterations"].get<std::uint64_t>();
  EXPECT_EQ(iterations, soak["iterations"].get<std::uint64_t>());
  EXPECT_LE(soak["windows"].size(), static_cast<std::size_t>(kSoakWindows));
}

TEST(Soak, AGraphIsSoakedToo) {
  const auto device = open_device("cpu", {});
  RunRequest request = tiny("tiny_kernel_stress");
  request.submit = parse_submit("graph");
  request.duration_ns = 50'000'000;
  EXPECT_EQ(run_workload(*device, request, {}, {}).status, "complete");
}

TEST(Soak, AnInterruptKeepsWhatThereIs) {
  const auto device = open_device("cpu", {});
  RunRequest request = tiny("tiny_kernel_stress");
  request.duration_ns = 3'600'000'000'000;
  std::atomic<bool> stop = false;
  int ended = 0;
  RunControl control;
  control.stop = &stop;
  control.after_iteration = [&](Session&) { stop = ++ended >= 20; };
  const Result result = run_workload(*device, request, {}, control);
  EXPECT_EQ(result.status, "interrupted");
  EXPECT_EQ(result.metrics["soak"]["iterations"], 19);  // one of the twenty warmed up
  EXPECT_EQ(result.samples.latency_ns->size(), 19u);
}

TEST(Soak, OnlyWhereTheHostWaits) {
  const auto device = open_device("cpu", {});
  RunRequest request = tiny("tiny_kernel_stress");
  request.duration_ns = 1'000'000;
  request.sync = SyncMode::end_only;
  EXPECT_THROW(run_workload(*device, request, {}, {}), Error);
}

}  // namespace
}  // namespace weir
