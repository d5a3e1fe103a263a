// A kernel that takes as long as a script says, in virtual time, on a machine that does what the script says.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lab/kernels/method.h"
#include "lab/kernels/package/ready_kernel.h"
#include "lab/kernels/surroundings.h"
#include "measure/bootstrap.h"

namespace weir::testing {

class ScriptedKernel : public package::ReadyKernel {
 public:
  // What tests set.
  std::string device = "cpu", way = "called";
  double run_ns = 100'000;                     // of one run
  double resolution = 25;                      // what its clock shows
  std::function<double(std::uint64_t)> shape;  // factor of the n-th batch
  double host_share = 0;                       // of the device's time that calls take
  double call_ns = 0;                          // of virtual time that a batch takes besides
  std::string no_cold;
  std::function<package::Checked(int)> checks;                      // by number of the check
  std::function<Telemetry(const ScriptedKernel&)> tells;            // what telemetry says
  std::function<void(ScriptedKernel&, std::uint64_t)> after_batch;  // scripts of the host's counters
  package::Work does;
  bench::HostCounters counters;
  std::int64_t now = 1;

  // What they look at.
  std::uint64_t batches = 0, runs = 0, cold_runs = 0, telemetry_calls = 0, yardsticks = 0;
  std::vector<double> batch_ns;
  double last_batch_ns = 0;
  int check_count = 0;

  const package::Work& work() const override { return does; }
  std::string how() const override { return way; }
  std::string device_name() const override { return device; }
  std::string device_model() const override { return "scripted"; }
  std::string clock() const override { return "virtual"; }
  double resolution_ns() const override { return resolution; }
  package::BatchTime run(std::uint64_t count) override {
    runs += count;
    return take(run_ns * static_cast<double>(count));
  }
  package::BatchTime run_cold() override {
    ++cold_runs;
    return take(3 * run_ns);
  }
  std::string cold_reason() const override { return no_cold; }
  package::Checked check() override {
    if (checks) return checks(check_count++);
    ++check_count;
    return {.outputs = {}, .reason = "no reference", .faults = {}};
  }
  package::KernelMemory memory() override {
    return {.allocated_bytes = 3'000'000, .peak_bytes = std::nullopt, .reason = "nobody counts"};
  }
  Telemetry telemetry() override {
    ++telemetry_calls;
    return tells ? tells(*this) : Telemetry{};
  }
  std::optional<std::uint64_t> launches_per_run() const override { return 1; }

  bench::Surroundings surroundings() {
    return {.now_ns = [this] { return now; },
            .counters = [this](bool) { return counters; },
            .yardstick_ns =
                [this] {
                  ++yardsticks;
                  now += 500'000;
                  return 500'000.0;
                }};
  }

 private:
  package::BatchTime take(double ns) {
    const double taken = shape ? ns * shape(batches) : ns;
    ++batches;
    now += static_cast<std::int64_t>(taken + call_ns);
    last_batch_ns = taken;
    if (after_batch) after_batch(*this, batches);
    // As a clock shows it: whole steps.
    const double seen = resolution > 0 ? std::floor(taken / resolution) * resolution : taken;
    return {.device_ns = seen, .host_ns = host_share * taken, .wall_ns = std::nullopt};
  }
};

inline bench::MeasuredKernel measure(ScriptedKernel& kernel, const bench::MethodOptions& options,
                                     const bench::Ceilings* ceilings = nullptr) {
  return bench::measure(kernel, Precision::fp32, options, ceilings, kernel.surroundings());
}

}  // namespace weir::testing
