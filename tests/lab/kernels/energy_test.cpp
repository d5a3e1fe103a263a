// Energy from counters that step, from power alone, and from nothing, in virtual time.
#include "lab/kernels/energy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "scripted_kernel.h"

namespace weir::testing {
namespace {

// A board of `watts` whose counter steps every `step_ns`.
auto counter(double watts, std::int64_t step_ns) {
  return [=](const ScriptedKernel& kernel) {
    Telemetry telemetry;
    telemetry.energy_j = 1000 + watts * static_cast<double>(kernel.now / step_ns * step_ns) / 1e9;
    telemetry.power_w = 9999;  // a single reading, which must not be believed
    return telemetry;
  };
}

Json energy_of(ScriptedKernel& kernel, double limit_s = 4) {
  return bench::measure_energy(kernel, kernel.surroundings(),
                               {.run_ns = kernel.run_ns, .is_host = false, .limit_s = limit_s, .is_stopped = {}});
}

TEST(BenchEnergy, is_the_counters_difference_whatever_its_steps) {
  for (const std::int64_t step_ms : {1, 20, 63, 100}) {
    ScriptedKernel kernel;
    kernel.device = "cuda:0";
    kernel.run_ns = 2e6;
    kernel.tells = counter(300, step_ms * 1'000'000);
    const Json energy = energy_of(kernel);
    // 300 W for 2 ms. Both ends are uncertain by one chunk of 10 ms, in a window of a second at least.
    EXPECT_NEAR(energy["energy_j"].get<double>(), 0.6, 0.02) << step_ms;
    EXPECT_NEAR(energy["power_w"].get<double>(), 300, 10) << step_ms;
    EXPECT_GE(energy["window_ns"].get<double>(), 1.0e9);
    EXPECT_LE(energy["window_ns"].get<double>(), 1.2e9) << "a second is enough, whatever the steps up to 100 ms";
    EXPECT_GE(energy["readings"].get<int>(), 10);
    EXPECT_NE(energy["source"].get<std::string>().find("counter"), std::string::npos);
    EXPECT_TRUE(energy["reason"].is_null());
  }
}

TEST(BenchEnergy, a_counter_that_wraps_begins_again) {
  ScriptedKernel kernel;
  kernel.run_ns = 2e6;
  kernel.tells = [](const ScriptedKernel& self) {
    Telemetry telemetry;
    telemetry.energy_j = std::fmod(100 * static_cast<double>(self.now / 20'000'000 * 20'000'000) / 1e9, 70);
    return telemetry;
  };
  EXPECT_NEAR(energy_of(kernel)["energy_j"].get<double>(), 0.2, 0.01);
}

TEST(BenchEnergy, power_alone_is_integrated_and_said_to_be) {
  ScriptedKernel kernel;
  kernel.run_ns = 1e6;
  kernel.tells = [](const ScriptedKernel& self) {
    Telemetry telemetry;
    telemetry.power_w = self.now / 50'000'000 % 2 == 0 ? 100 : 300;
    return telemetry;
  };
  const Json energy = energy_of(kernel);
  EXPECT_NEAR(energy["power_w"].get<double>(), 200, 12);
  EXPECT_NEAR(energy["energy_j"].get<double>(), 0.2, 0.012);
  EXPECT_GE(energy["readings"].get<int>(), 10);
  EXPECT_NE(energy["source"].get<std::string>().find("integrated"), std::string::npos);
}

TEST(BenchEnergy, few_readings_of_power_are_no_energy) {
  ScriptedKernel kernel;
  kernel.run_ns = 1e9;
  kernel.tells = [](const ScriptedKernel&) {
    Telemetry telemetry;
    telemetry.power_w = 100;
    return telemetry;
  };
  const Json energy = energy_of(kernel);
  EXPECT_TRUE(energy["energy_j"].is_null());
  EXPECT_FALSE(energy["reason"].is_null());
}

TEST(BenchEnergy, is_null_with_a_reason_where_nothing_is_told) {
  ScriptedKernel kernel;
  const Json energy = energy_of(kernel);
  EXPECT_TRUE(energy["energy_j"].is_null());
  EXPECT_TRUE(energy["power_w"].is_null());
  EXPECT_FALSE(energy["reason"].is_null());
  EXPECT_EQ(kernel.runs, 0u);
}

TEST(BenchEnergy, a_counter_that_stands_still_ends_and_gives_nothing) {
  for (const double run_ns : {0.0, 1e6}) {
    ScriptedKernel kernel;
    kernel.run_ns = run_ns;
    kernel.tells = [](const ScriptedKernel&) {
      Telemetry telemetry;
      telemetry.energy_j = 5;
      return telemetry;
    };
    EXPECT_TRUE(energy_of(kernel)["energy_j"].is_null());
  }
}

TEST(BenchEnergy, a_window_that_is_too_short_gives_nothing) {
  ScriptedKernel kernel;
  kernel.run_ns = 2e6;
  kernel.tells = counter(300, 100'000'000);
  EXPECT_TRUE(energy_of(kernel, 0.3)["energy_j"].is_null());
}

}  // namespace
}  // namespace weir::testing
