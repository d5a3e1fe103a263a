// A simulated device that takes as long for a step as a real one: measures what the step's commands last alone, what
// calls and gaps cost, and fits the rest to the step's own time. What it then says of other queue counts is a
// prediction.
#pragma once

#include <string>
#include <vector>

#include "device/sim_profile.h"
#include "queue/probe.h"
#include "run/runner.h"

namespace weir {

struct Calibration {
  sim::SimProfile profile;       // with as many queues as the device has now
  double measured_ns = 0;        // the step on the device: median
  Json measured_interval;        // 95 %, or null
  double submit_ns = 0;          // of it, the host's time to submit
  double first_ns = 0;           // the step by the profile as measured, before anything was fitted
  double simulated_ns = 0;       // after
  double host_factor = 1;        // fitted: cost of the host's calls in this step, against those of a probe
  bool has_device_times = true;  // false: durations are from the cost model
  std::string timeline;          // where the durations are from
};

// Everything that one step on one device is: kept together because each part refers to the others.
struct StepRun {
  const BuiltRun& built;
  std::string submit;  // as of --submit
  int iterations = 30;
  int warmup = 5;
};

// `probe` says how the device maps streams. Rejects a device that has no clock and steps that it cannot run.
Calibration calibrate(Device& device, const StepRun& run, const QueueProbe& probe, const RunControl& control);

// The step on a simulated device: median of some iterations in virtual time, and their timeline.
struct Simulated {
  double step_ns = 0;
  double submit_ns = 0;
  Timeline timeline;
};
Simulated simulate(const sim::SimProfile& profile, const StepRun& run, bool is_traced);

}  // namespace weir
