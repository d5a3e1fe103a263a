// What sharing hardware queues costs a step, and what other queue counts would do: measured here, predicted by a
// simulated device that takes as long for the step as the real one. For that it measures what the step's commands last
// alone, what calls and gaps cost, and fits the rest to the step's own time (calibrate.cpp). Runs no other process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/sim/profile.h"
#include "lab/queues/probe.h"
#include "lab/queues/queues_document.h"
#include "run/runner.h"

namespace weir {

// The step on the device: the median process of some, because a process' luck (where its threads and pages are) lasts.
struct MeasuredStep {
  double step_ns = 0;              // median of its iterations
  double submit_ns = 0;            // of it, the host's time to submit
  std::vector<double> process_ns;  // the medians of all processes
  Json interval;                   // 95 %, of the median within one process; null where there were several, or few
};

// Everything that one step on one device is: kept together because each part refers to the others.
struct StepRun {
  const BuiltRun& built;
  std::string submit;  // as of --submit
  int iterations = 30;
  int warmup = 5;
  std::optional<MeasuredStep> measured;  // elsewhere, with these settings; nothing: to be measured here
};

struct Calibration {
  sim::SimProfile profile;  // with as many queues as the device has now
  MeasuredStep measured;
  double first_ns = 0;      // the step by the profile as measured, before anything was fitted
  double simulated_ns = 0;  // after
  double host_factor = 1;   // fitted: cost of the host's calls in this step, against those of a probe
  std::string timeline;     // where the durations are from
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

struct CostRequest {
  RunRequest run;  // workload, streams, submit ...
  std::optional<MeasuredStep> measured;
  QueueProbe probe;         // of the same device
  std::vector<int> queues;  // to predict for
};

struct QueueCost {
  Json document;  // weir.queues/1, of the experiment `cost`, without "verification"
  sim::SimProfile profile;
  int queues_now = 0;
  struct Prediction {
    int queues = 0;
    double step_ns = 0;
  };
  std::vector<Prediction> predictions;  // as asked for
  std::optional<int> advised;           // a count that is worth changing to
};

QueueCost price_queues(Device& device, const CostRequest& request, const RunContext& context,
                       const RunControl& control);

}  // namespace weir
