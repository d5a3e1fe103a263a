// Soaks: bounded samples that cover all iterations evenly, drift that outliers do not fake, alarms, and early ends.
#include "run/soak.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "device/rank/threads.h"
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

// All ranks stop when the first one's time is over, also one whose own time is not.
TEST(Soak, RanksRunToTheEndTogether) {
  ThreadWorld world(2);
  TimedPass passes[2];
  const auto soak_on = [&](int rank) {
    DeviceOptions options;
    options.communicator = &world.rank(rank);
    const auto device = open_device("cpu", options);
    RunRequest request = tiny("tiny_kernel_stress");
    request.duration_ns = rank == 0 ? 50'000'000 : 3'600'000'000'000;
    const BuiltRun built = build_run(device->info(), request, {rank, 2});
    const auto session = device->prepare(built.step, built.placement, built.submit.session_options());
    const auto submitter = make_submitter(built.submit, built.step, built.placement, *session);
    RunControl control;
    control.communicator = &world.rank(rank);
    Soak soak;
    passes[rank] = run_soak_pass(*device, *session, *submitter, request, control, nullptr, soak);
  };
  std::thread other(soak_on, 1);
  soak_on(0);
  other.join();
  for (const TimedPass& pass : passes) EXPECT_FALSE(pass.is_interrupted);
  EXPECT_EQ(passes[0].iterations, passes[1].iterations);
}

TEST(Soak, OnVirtualDevicesSamplesLieInTheirWindows) {
  const auto device = open_device("sim:h200", {});
  RunRequest request = tiny("tiny_kernel_stress");
  request.duration_ns = 50'000'000;
  const BuiltRun built = build_run(device->info(), request);
  const auto session = device->prepare(built.step, built.placement, built.submit.session_options());
  const auto submitter = make_submitter(built.submit, built.step, built.placement, *session);
  Soak soak;
  const TimedPass pass = run_soak_pass(*device, *session, *submitter, request, {}, nullptr, soak);
  ASSERT_EQ(soak.stride, 1u) << "all are kept";
  std::size_t next = 0;
  for (const SoakWindow& window : soak.windows)
    for (std::uint64_t i = 0; i < window.iterations; ++i, ++next) {
      ASSERT_LT(next, soak.begun_ns.size());
      EXPECT_GE(soak.begun_ns[next], window.started_ns);
      EXPECT_LT(soak.begun_ns[next], window.ended_ns);
    }
  EXPECT_EQ(next, pass.latency_ns.size());
}

TEST(TracedPass, AStopKeepsTheNextIterationOnly) {
  const auto device = open_device("cpu", {});
  const RunRequest request = tiny("tiny_kernel_stress");
  const BuiltRun built = build_run(device->info(), request);
  TraceSchedule schedule(2);
  schedule.wait = 1000;
  std::atomic<bool> stop = false;
  int ended = 0;
  RunControl control;
  control.stop = &stop;
  control.after_iteration = [&](Session&) { stop = ++ended >= 3; };
  const TracedPass pass = run_traced_pass(*device, built.step, built.placement, built.submit, schedule, control);
  EXPECT_EQ(ended, 4);
  ASSERT_EQ(pass.rounds.size(), 1u);
  EXPECT_EQ(pass.rounds[0].iteration, 3u);
  ASSERT_FALSE(pass.timeline.spans.empty());
  for (const Span& span : pass.timeline.spans) EXPECT_EQ(span.iteration, 3u);
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
