// Measures one ready kernel: warms it up until steady and takes samples, in batches that the clock can resolve, until
// there are enough; disturbed samples are redone. Returns samples and how they were taken; judges nothing.
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

enum class Stop : std::uint8_t { iterations, interval, entropy };  // the budget always ends it as well

struct MethodOptions {
  int iterations = 30;  // samples; the minimum if another rule stops
  int warmup = 3;       // minimum runs; more until they are steady
  Stop stop = Stop::iterations;
  double interval_width = 0.02;  // Stop::interval: width of the median's 95 % interval, relative to the median
  int most_iterations = 1000;
  double budget_s = 30;  // time to measure one case
  bool is_cold = false;  // caches are emptied before each run
  bool measures_energy = true;
  package::Tolerance tolerance;
  std::function<bool()> is_stopped;
  // Called after each sample, so that the samples survive a crash.
  std::function<void(double sample_ns)> on_sample;
};

// One measured case, or as far as it got. The JSON members are its parts of kernels/NAME.json.
struct MeasuredKernel {
  std::vector<double> samples_ns;  // per run: a batch's time divided by its runs
  std::uint64_t batch = 1;
  Json timing, memory, energy, accuracy, roofline;  // null if it did not get that far
  bool is_accurate = true;                          // false: beyond a tolerance, NaN, or wrote out of bounds
  std::string inaccuracy;                           // a description
  // The speed of the machine (Surroundings::yardstick_ns) before, between and after the samples; only for the CPU
  // backend.
  std::vector<double> yardstick_ns;
};

// `surroundings` defaults to the host's.
MeasuredKernel measure(package::ReadyKernel& kernel, Precision precision, const MethodOptions& options,
                       const Ceilings* ceilings, const Surroundings& surroundings = host_surroundings());

// The timing block from samples: latency_ms_p50, _p90, _p99, _mean, _std, throughput_ops_per_sec, iterations,
// interval_ms (95 % of the median, null for few), samples_ms, outliers by class. Also used to merge rounds.
Json timing_block(const std::vector<double>& samples_ns);

}  // namespace weir::bench
