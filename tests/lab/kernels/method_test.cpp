// The whole method on a scripted kernel in virtual time.
#include "lab/kernels/method.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "scripted_kernel.h"

namespace weir::testing {
namespace {

using bench::MeasuredKernel;
using bench::MethodOptions;
using bench::Stop;

double noise(std::uint64_t n, double width) { return 1 + width * (SplitMix(n * 7919 + 1).fraction() - 0.5); }

TEST(BenchMethod, takes_exactly_as_many_samples_as_asked) {
  for (const int iterations : {1, 2, 10, 30, 77}) {
    ScriptedKernel kernel;
    const MeasuredKernel result = measure(kernel, {.iterations = iterations});
    EXPECT_EQ(result.samples_ns.size(), static_cast<std::size_t>(iterations));
    EXPECT_EQ(result.timing["iterations"], iterations);
    EXPECT_EQ(result.timing["stopped_by"], "iterations");
  }
}

TEST(BenchMethod, a_sample_is_the_time_of_one_run_whatever_the_batch) {
  for (const double run_ns : {3.0, 80.0, 12'345.0, 4e6}) {
    ScriptedKernel kernel;
    kernel.run_ns = run_ns;
    const MeasuredKernel result = measure(kernel, {.iterations = 10});
    for (const double sample : result.samples_ns) EXPECT_NEAR(sample, run_ns, 0.001 * run_ns);
    EXPECT_LT(result.timing["resolution"].get<double>(), 0.001) << run_ns;
  }
}

TEST(BenchMethod, says_the_resolution_where_cold_runs_cannot_be_batched) {
  ScriptedKernel kernel;
  kernel.run_ns = 400;
  kernel.resolution = 500;
  const MeasuredKernel result = measure(kernel, {.iterations = 10, .is_cold = true});
  EXPECT_EQ(result.batch, 1u);
  EXPECT_EQ(result.samples_ns.size(), 10u);
  EXPECT_NEAR(result.timing["resolution"].get<double>(), 0.5, 1e-9);
  EXPECT_TRUE(result.timing["is_cold"].get<bool>());
  EXPECT_TRUE(result.timing["is_launch_bound"].is_null());
  EXPECT_TRUE(result.energy["energy_j"].is_null());
  EXPECT_GE(kernel.cold_runs, 10u);
  EXPECT_EQ(kernel.runs, 0u);
}

TEST(BenchMethod, refuses_cold_runs_where_there_are_none) {
  ScriptedKernel kernel;
  kernel.no_cold = "an executable cannot be flushed";
  EXPECT_THROW(measure(kernel, {.is_cold = true}), Error);
  EXPECT_EQ(kernel.batches, 0u);
}

TEST(BenchMethod, warms_up_until_the_drift_is_over) {
  ScriptedKernel kernel;
  kernel.run_ns = 1e6;
  // The first 300 batches get faster and faster, as where clocks rise.
  kernel.shape = [](std::uint64_t n) { return n < 300 ? 3 - 2 * static_cast<double>(n) / 300 : 1.0; };
  const MeasuredKernel result = measure(kernel, {.iterations = 10});
  EXPECT_TRUE(result.timing["is_steady"].get<bool>());
  EXPECT_GT(result.timing["warmup_runs"].get<std::uint64_t>(), 290u);
  for (const double sample : result.samples_ns) EXPECT_NEAR(sample, 1e6, 0.04e6);
}

TEST(BenchMethod, says_that_it_never_became_steady) {
  ScriptedKernel kernel;
  kernel.run_ns = 1e6;
  kernel.shape = [](std::uint64_t n) { return 1 + 0.02 * static_cast<double>(n); };
  const MeasuredKernel result = measure(kernel, {.iterations = 5, .budget_s = 1});
  EXPECT_FALSE(result.timing["is_steady"].get<bool>());
  EXPECT_NE(result.timing["unsteady_reason"].get<std::string>().find("settled"), std::string::npos);
  EXPECT_FALSE(result.samples_ns.empty());
}

TEST(BenchMethod, long_runs_that_do_not_change_are_steady) {
  for (const double run_ns : {60e6, 140e6, 250e6}) {
    ScriptedKernel kernel;
    kernel.run_ns = run_ns;
    kernel.shape = [](std::uint64_t n) { return noise(n, 0.005); };
    EXPECT_TRUE(measure(kernel, {.iterations = 5, .budget_s = 10}).timing["is_steady"].get<bool>()) << run_ns;
  }
  // So long that nothing can be said is not the same as unsteady.
  ScriptedKernel longest;
  longest.run_ns = 900e6;
  const MeasuredKernel result = measure(longest, {.iterations = 5, .budget_s = 10});
  EXPECT_FALSE(result.timing["is_steady"].get<bool>());
  EXPECT_NE(result.timing["unsteady_reason"].get<std::string>().find("too few to tell"), std::string::npos);
}

TEST(BenchMethod, ends_with_the_budget) {
  ScriptedKernel kernel;
  kernel.run_ns = 0.2e9;
  const MeasuredKernel result = measure(kernel, {.iterations = 1000, .warmup = 1, .budget_s = 2});
  EXPECT_EQ(result.timing["stopped_by"], "budget");
  // Some of it goes into the yardstick.
  EXPECT_GE(result.samples_ns.size(), 8u);
  EXPECT_LE(result.samples_ns.size(), 10u);
}

TEST(BenchMethod, stops_when_asked_and_keeps_what_it_has) {
  ScriptedKernel kernel;
  std::size_t seen = 0;
  const MeasuredKernel result = measure(
      kernel, {.iterations = 1000, .is_stopped = [&] { return seen >= 7; }, .on_sample = [&](double) { ++seen; }});
  EXPECT_EQ(result.timing["stopped_by"], "stopped");
  EXPECT_GE(result.samples_ns.size(), 7u);
  EXPECT_LT(result.samples_ns.size(), 200u);
  EXPECT_EQ(seen, result.samples_ns.size());
  EXPECT_TRUE(result.energy["energy_j"].is_null());
}

TEST(BenchMethod, every_rule_ends_for_every_kernel) {
  int combinations = 0;
  for (const Stop stop : {Stop::iterations, Stop::interval, Stop::entropy})
    for (const double run_ns : {0.0, 0.2, 900.0, 3e5, 7e7})
      for (const double resolution : {0.0, 25.0, 1e6})
        for (const int kind : {0, 1, 2, 3}) {
          ScriptedKernel kernel;
          kernel.run_ns = run_ns;
          kernel.resolution = resolution;
          kernel.shape = [kind](std::uint64_t n) {
            if (kind == 1) return noise(n, 0.3);
            if (kind == 2) return 1 + static_cast<double>(n);           // never the same
            if (kind == 3) return n % 5 == 0 ? 40.0 : noise(n, 0.001);  // spikes
            return 1.0;
          };
          const MeasuredKernel result =
              measure(kernel, {.iterations = 20, .stop = stop, .most_iterations = 200, .budget_s = 3});
          EXPECT_FALSE(result.samples_ns.empty());
          EXPECT_LE(result.samples_ns.size(), 200u);
          EXPECT_FALSE(result.timing["stopped_by"].get<std::string>().empty());
          ++combinations;
        }
  EXPECT_EQ(combinations, 180);
}

TEST(BenchMethod, narrow_samples_end_by_the_interval_early_and_wide_ones_late) {
  const auto count = [](double width) {
    ScriptedKernel kernel;
    kernel.shape = [width](std::uint64_t n) { return noise(n, width); };
    const MeasuredKernel result = measure(kernel, {.iterations = 20, .stop = Stop::interval, .budget_s = 300});
    return std::pair(result.samples_ns.size(), result.timing["stopped_by"].get<std::string>());
  };
  EXPECT_EQ(count(0.005), std::pair(std::size_t{20}, std::string("interval")));
  const auto [wide, by] = count(0.3);
  EXPECT_EQ(by, "interval");
  EXPECT_GT(wide, 60u);
}

TEST(BenchMethod, redoes_what_others_disturbed_and_says_so) {
  ScriptedKernel kernel;
  kernel.counters.waited_ns = 0;
  // Every fourth batch waits for the core, and takes twice as long for it.
  kernel.shape = [](std::uint64_t n) { return n % 4 == 0 ? 2.0 : 1.0; };
  kernel.after_batch = [](ScriptedKernel& self, std::uint64_t n) {
    if ((n - 1) % 4 == 0) *self.counters.waited_ns += 50'000;
  };
  const MeasuredKernel result = measure(kernel, {.iterations = 30});
  EXPECT_EQ(result.samples_ns.size(), 30u);
  for (const double sample : result.samples_ns) EXPECT_NEAR(sample, 1e5, 100);
  const Json& disturbed = result.timing["disturbed"];
  EXPECT_GE(disturbed["redone"].get<int>(), 7);
  EXPECT_EQ(disturbed["kept"], 0);
  EXPECT_EQ(disturbed["samples_ns"].size(), disturbed["redone"].get<std::size_t>());
  EXPECT_NEAR(disturbed["samples_ns"][0].get<double>(), 0.2e6, 1e3);
  EXPECT_EQ(disturbed["reasons"]["others had the core"], disturbed["redone"]);
}

TEST(BenchMethod, a_switch_is_the_sign_where_waiting_is_not_counted) {
  ScriptedKernel kernel;
  kernel.after_batch = [](ScriptedKernel& self, std::uint64_t n) { self.counters.switches += n % 5 == 0; };
  const MeasuredKernel result = measure(kernel, {.iterations = 20});
  EXPECT_GE(result.timing["disturbed"]["redone"].get<int>(), 3);
}

TEST(BenchMethod, what_is_always_disturbed_is_kept_and_ends) {
  ScriptedKernel kernel;
  kernel.after_batch = [](ScriptedKernel& self, std::uint64_t) { ++self.counters.switches; };
  const MeasuredKernel result = measure(kernel, {.iterations = 30});
  EXPECT_EQ(result.samples_ns.size(), 30u);
  const Json& disturbed = result.timing["disturbed"];
  EXPECT_LE(disturbed["redone"].get<int>(), 30);
  EXPECT_EQ(disturbed["kept"], 30);
  EXPECT_FALSE(disturbed["note"].is_null());
}

TEST(BenchMethod, redone_samples_are_never_more_than_samples) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ScriptedKernel kernel;
    kernel.after_batch = [seed](ScriptedKernel& self, std::uint64_t n) {
      self.counters.switches += SplitMix(seed * 1000 + n).fraction() < 0.48;
    };
    const MeasuredKernel result = measure(kernel, {.iterations = 15});
    EXPECT_EQ(result.samples_ns.size(), 15u);
    EXPECT_LE(result.timing["disturbed"]["redone"].get<int>(), 15);
  }
}

TEST(BenchMethod, samples_at_a_low_clock_are_redone) {
  ScriptedKernel kernel;
  kernel.device = "cuda:0";
  kernel.run_ns = 1e6;
  kernel.resolution = 500;
  // Of 40 ms each, the last five have a low clock, and take longer.
  const auto is_low = [](const ScriptedKernel& self) { return self.now / 1'000'000 % 40 >= 35; };
  kernel.shape = [&](std::uint64_t) { return is_low(kernel) ? 1.5 : 1.0; };
  kernel.tells = [&](const ScriptedKernel& self) {
    Telemetry telemetry;
    telemetry.clock_mhz = is_low(self) ? 1200 : 1980;
    return telemetry;
  };
  const MeasuredKernel result = measure(kernel, {.iterations = 100});
  EXPECT_EQ(result.samples_ns.size(), 100u);
  EXPECT_GT(result.timing["disturbed"]["reasons"]["low clock"].get<int>(), 0);
  EXPECT_EQ(result.timing["clocks_mhz"]["p50"], 1980);
  EXPECT_EQ(result.timing["clocks_mhz"]["low"], 1200);
}

TEST(BenchMethod, a_throttle_in_force_all_the_time_is_said_and_kept) {
  ScriptedKernel kernel;
  kernel.device = "cuda:0";
  kernel.run_ns = 1e6;
  kernel.resolution = 500;
  kernel.tells = [](const ScriptedKernel&) {
    Telemetry telemetry;
    telemetry.clock_mhz = 1500;
    telemetry.throttle = {"power cap"};
    return telemetry;
  };
  const MeasuredKernel result = measure(kernel, {.iterations = 30, .measures_energy = false});
  EXPECT_EQ(result.samples_ns.size(), 30u);
  EXPECT_GT(result.timing["disturbed"]["reasons"]["throttled: power cap"].get<int>(), 30);
  EXPECT_FALSE(result.timing["disturbed"]["note"].is_null());
}

TEST(BenchMethod, telemetry_is_not_asked_more_often_than_every_five_milliseconds) {
  ScriptedKernel kernel;
  kernel.device = "cuda:0";
  kernel.run_ns = 1e6;
  kernel.resolution = 500;
  kernel.tells = [](const ScriptedKernel&) {
    Telemetry telemetry;
    telemetry.clock_mhz = 1500;
    return telemetry;
  };
  measure(kernel, {.iterations = 100, .measures_energy = false});
  // 100 ms of samples, the first reading and the last.
  EXPECT_GE(kernel.telemetry_calls, 10u);
  EXPECT_LE(kernel.telemetry_calls, 22u);
}

TEST(BenchMethod, runs_the_yardstick_on_the_cpu_for_less_than_a_twentieth_of_the_time) {
  ScriptedKernel kernel;
  kernel.run_ns = 1e6;
  const MeasuredKernel result = measure(kernel, {.iterations = 500});
  EXPECT_EQ(result.yardstick_ns.size(), kernel.yardsticks);
  // Three at each end, and between them one of 1.5 ms for at least 30 ms of samples.
  EXPECT_GE(kernel.yardsticks, 15u);
  EXPECT_LE(kernel.yardsticks, 6u + 500 / 20);
  ScriptedKernel gpu;
  gpu.device = "cuda:0";
  EXPECT_TRUE(measure(gpu, {.iterations = 5}).yardstick_ns.empty());
}

TEST(BenchMethod, is_launch_bound_where_calls_take_as_long_as_the_device) {
  for (const double share : {0.2, 1.0})
    for (const double run_ns : {1e3, 1e6}) {
      ScriptedKernel kernel;
      kernel.device = "cuda:0";
      kernel.run_ns = run_ns;
      kernel.host_share = share;
      EXPECT_EQ(measure(kernel, {.iterations = 5}).timing["is_launch_bound"], share > 0.9);
    }
  // A full queue makes calls wait, so batches of thousands say nothing.
  ScriptedKernel full;
  full.device = "cuda:0";
  full.run_ns = 500;
  full.after_batch = [](ScriptedKernel& self, std::uint64_t) {
    self.host_share = self.last_batch_ns > 200e3 ? 1 : 0.1;
  };
  EXPECT_EQ(measure(full, {.iterations = 5}).timing["is_launch_bound"], false);
  ScriptedKernel cpu;
  EXPECT_TRUE(measure(cpu, {.iterations = 5}).timing["is_launch_bound"].is_null());
}

TEST(BenchMethod, checks_before_and_after_and_the_worse_counts) {
  const auto with = [](double error) {
    return package::Checked{
        .outputs = {{.name = "y", .actual = {1 + error, 2}, .expected = {1, 2}}}, .reason = {}, .faults = {}};
  };
  ScriptedKernel kernel;
  kernel.checks = [&](int n) { return with(n == 0 ? 0 : 0.5); };
  const MeasuredKernel late = measure(kernel, {.iterations = 5});
  EXPECT_EQ(kernel.check_count, 2);
  EXPECT_FALSE(late.is_accurate);
  EXPECT_EQ(late.accuracy["checked"], "after measuring");
  EXPECT_NE(late.inaccuracy.find("\"y\""), std::string::npos);
  kernel.checks = [&](int n) { return with(n == 2 ? 0.5 : 0); };
  EXPECT_EQ(measure(kernel, {.iterations = 5}).accuracy["checked"], "before measuring");
}

TEST(BenchMethod, memory_and_items_carry_what_is_known) {
  ScriptedKernel kernel;
  kernel.does.items = 1000;
  kernel.does.item_name = "rows";
  const MeasuredKernel result = measure(kernel, {.iterations = 5});
  EXPECT_EQ(result.memory["allocated_bytes"], 3e6);
  EXPECT_TRUE(result.memory["peak_bytes"].is_null());
  EXPECT_EQ(result.memory["reason"], "nobody counts");
  EXPECT_NEAR(result.timing["items_per_s"].get<double>(), 1000 * 1e9 / 1e5, 1e4);
  EXPECT_TRUE(result.accuracy["is_within"].is_null());
  EXPECT_TRUE(result.is_accurate);
}

TEST(BenchTiming, gives_the_quantiles_of_the_samples) {
  std::vector<double> samples(100);
  std::iota(samples.begin(), samples.end(), 1.0);
  for (double& sample : samples) sample *= 1e6;
  const Json timing = bench::timing_block(samples);
  EXPECT_DOUBLE_EQ(timing["latency_ns"]["p50"].get<double>(), 50.5e6);
  EXPECT_DOUBLE_EQ(timing["latency_ns"]["p90"].get<double>(), 90.1e6);
  EXPECT_DOUBLE_EQ(timing["latency_ns"]["p99"].get<double>(), 99.01e6);
  EXPECT_DOUBLE_EQ(timing["latency_ns"]["mean"].get<double>(), 50.5e6);
  EXPECT_NEAR(timing["runs_per_s"].get<double>(), 1000 / 50.5, 1e-9);
  EXPECT_LT(timing["latency_ns"]["p50_interval"][0].get<double>(), 50.5e6);
  EXPECT_GT(timing["latency_ns"]["p50_interval"][1].get<double>(), 50.5e6);
  EXPECT_EQ(timing["samples_ns"].size(), 100u);
}

TEST(BenchTiming, has_null_where_samples_are_too_few) {
  const Json one = bench::timing_block({5e6});
  EXPECT_EQ(one["latency_ns"]["p50"], 5e6);
  EXPECT_TRUE(one["latency_ns"]["std"].is_null());
  EXPECT_TRUE(one["latency_ns"]["p50_interval"].is_null());
  EXPECT_TRUE(one["outliers"].is_null());
  EXPECT_TRUE(bench::timing_block({})["latency_ns"]["p50"].is_null());
}

}  // namespace
}  // namespace weir::testing
