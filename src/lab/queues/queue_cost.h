// What sharing hardware queues costs a step, and what other queue counts would do: measured here, predicted by a
// simulated device that was calibrated here. Runs no other process.
#pragma once

#include <vector>

#include "lab/queues/calibrate.h"
#include "lab/queues/queues_document.h"

namespace weir {

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
