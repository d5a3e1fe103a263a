// How one ready kernel is measured: warmed up until steady, in batches that the clock can resolve, until there is
// enough, with disturbed samples redone. Gives samples and what they rest on; judges nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lab/kernels/package/ready_kernel.h"
#include "lab/kernels/roofline.h"
#include "lab/kernels/surroundings.h"

namespace weir::bench {

enum class Stop : std::uint8_t { iterations, interval, entropy };  // the budget always ends it too

struct MethodOptions {
  int iterations = 30;  // samples; the least where another rule stops
  int warmup = 3;       // runs at least; more until they are steady
  Stop stop = Stop::iterations;
  double interval_width = 0.02;  // Stop::interval: of the median's 95 % interval, relative to the median
  int most_iterations = 1000;
  double budget_s = 30;  // of measuring one case
  bool is_cold = false;  // caches hold nothing before each run
  bool measures_energy = true;
  package::Tolerance tolerance;
  std::function<bool()> is_stopped;
  // Called after each sample, so that what was measured survives a crash.
  std::function<void(double sample_ns)> on_sample;
};

// One measured case, or as far as it came. JSON below is the part of kernels/NAME.json that it becomes.
struct MeasuredKernel {
  std::vector<double> samples_ns;  // per run: a batch's time divided by its runs
  std::uint64_t batch = 1;
  Json timing, memory, energy, accuracy, roofline;  // null where it did not come that far
  bool is_accurate = true;                          // false: beyond a tolerance, NaN, or wrote where it must not
  std::string inaccuracy;                           // in words
  // How fast the machine was meanwhile (Surroundings::yardstick_ns): before, between and after the samples; the CPU
  // backend only.
  std::vector<double> yardstick_ns;
};

// `surroundings` are the host's where nobody brings others.
MeasuredKernel measure(package::ReadyKernel& kernel, Precision precision, const MethodOptions& options,
                       const Ceilings* ceilings, const Surroundings& surroundings = host_surroundings());

// The timing block from samples: latency_ms_p50, _p90, _p99, _mean, _std, throughput_ops_per_sec, iterations,
// interval_ms (95 % of the median, null for few), samples_ms, outliers by class. Used again where rounds are put
// together.
Json timing_block(const std::vector<double>& samples_ns);

}  // namespace weir::bench
