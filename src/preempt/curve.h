// What observations say: latencies per mechanism and victim length against the intruder alone, what the victim lost,
// and a sentence that is true. Knows no device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "preempt/experiment.h"

namespace weir::preempt {

struct Quantiles {  // of one latency, in ns; empty where too few requests carry it
  std::optional<double> p50, p90, p99, p999, most, mean;
  std::size_t count = 0;
};

struct Point {
  Victim victim;
  Quantiles to_start, to_end;         // from when it was due
  double against_alone = 0;           // p99 to end over that of the intruder alone
  std::optional<double> victim_loss;  // of its throughput without an intruder, 0 to 1
  Observation observation;            // with all its samples
};

struct Curve {
  const Mechanism* mechanism = nullptr;
  Capability offered;
  std::vector<Point> points;  // by victim
  std::string verdict;        // one sentence
};

struct Alone {
  std::vector<Observation> repeats;
  Quantiles to_start, to_end;
  double drift = 0;          // the largest difference of medians between repeats, relative
  bool has_drifted = false;  // more than its own noise and 20 %: numbers against it are doubtful
};

struct Findings {
  Plan plan;
  DeviceInfo device;
  Alone alone;
  std::vector<Curve> curves;
  std::string verdict;  // of the whole: what to use here
  std::vector<std::string> warnings;
};

Findings conclude(const Plan& plan, const DeviceInfo& device, std::vector<Observation> alone,
                  std::vector<Curve> curves);
Json preempt_document(const Findings& findings);  // "schema": "weir.preempt/1"

}  // namespace weir::preempt
