// Estimates what sharing hardware queues costs a step, and what other queue counts would change. The step is measured
// here, the rest is predicted by a simulated device on which the step takes as long. For that, it measures the
// durations of the step's commands alone and the costs of calls and gaps, and fits the rest to the step's own time
// (calibrate.cpp). Runs no other process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/sim/profile.h"
#include "lab/queues/device_rules.h"
#include "lab/queues/probe.h"
#include "lab/queues/queues_document.h"
#include "run/runner.h"

namespace weir {

// The step on the device. Of several processes it is the fastest one: a process keeps its luck (the placement of its
// threads and pages), which makes a step slower and not faster.
struct MeasuredStep {
  double step_ns = 0;              // median of its iterations
  double submit_ns = 0;            // the host's part of it, to submit
  std::vector<double> process_ns;  // the medians of all processes
  Json interval;                   // 95 %, of the median within one process; null for several processes or few samples
};

// One step on one device; kept together because the parts refer to each other.
struct StepRun {
  const BuiltRun& built;
  int iterations = 30;
  int warmup = 5;
  std::optional<MeasuredStep> measured;  // measured elsewhere with these settings; nothing: measure it here
};

struct Calibration {
  sim::SimProfile profile;  // with as many queues as the device has now
  DeviceRules rules;        // as found by experiment
  MeasuredStep measured;
  double first_ns = 0;           // the step's time with the profile as measured, before fitting
  double simulated_ns = 0;       // after fitting
  std::optional<double> gap_ns;  // between kernels of the step in one stream; nothing: as between a probe's
  double contention = 0;         // fitted: of all kernels together, weighted by their time
  double host_factor = 1;        // fitted: cost of the host's calls in this step relative to the probe's
  std::string timeline;          // source of the durations
};

// `probe` describes how the device maps streams. Rejects devices without a clock and steps that the device cannot run.
Calibration calibrate(Device& device, const StepRun& run, const QueueProbe& probe, const RunControl& control);

// The step on a simulated device: the median of some iterations in virtual time, and their timeline.
struct Simulated {
  double step_ns = 0;
  double submit_ns = 0;
  Timeline timeline;
};
Simulated simulate(const sim::SimProfile& profile, const StepRun& run, bool is_traced);

struct CostRequest {
  RunRequest run;  // workload, streams, submit ...
  std::optional<MeasuredStep> measured;
  QueueProbe probe;         // of the same device
  std::vector<int> queues;  // to predict for
};

struct QueueCost {
  Json document;  // weir.queues/2 with the experiment `cost`, without "verification"
  sim::SimProfile profile;
  int queues_now = 0;
  struct Prediction {
    int queues = 0;
    std::optional<double> step_ns;  // nothing if the calibrated device is not like the real one
  };
  std::vector<Prediction> predictions;  // for the requested counts
  std::optional<int> advised;           // a count that is worth changing to
};

QueueCost price_queues(Device& device, const CostRequest& request, const RunContext& context,
                       const RunControl& control);

}  // namespace weir
