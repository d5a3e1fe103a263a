// Searches the settings of a training step for the least exposed communication, within a time budget. Knows settings
// and outcomes; the caller runs the trials.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace weir {

// A setting that may be changed, and its values. The search starts at the first value.
struct TuneAxis {
  std::string key;
  std::vector<std::string> values;
};

struct TuneTrial {
  std::vector<std::string> values;  // by axis
  std::optional<double> exposed_ns, step_ns, efficiency;
  std::optional<double> memory_bytes;
  std::string failure;  // why there is no result
  double seconds = 0;
  bool is_on_front = false;  // no other trial is faster with as little memory, or as fast with less

  bool is_usable() const { return failure.empty() && step_ns.has_value(); }
};

struct TuneControl {
  // Runs one trial and fills everything except `values`. Returns false to stop.
  std::function<bool(TuneTrial& trial)> run;
  std::function<double()> elapsed_seconds;
  double budget_seconds = 300;
};

struct TuneResult {
  std::vector<TuneTrial> trials;    // in the order in which they ran
  std::size_t combinations = 0;     // how many exist
  std::optional<std::size_t> best;  // the fastest of those within 2 % of the least exposed time
  bool is_complete = false;         // all combinations were tried, or no single change is better
  bool is_interrupted = false;
};

// Coordinate descent from the first values: changes one axis at a time and keeps what exposes less, until no single
// change helps. Then tries the remaining combinations in a seeded order while the budget lasts. A trial starts only if
// as much time is left as the last one took.
TuneResult tune_overlap(const std::vector<TuneAxis>& axes, const TuneControl& control);

// Marks the trials on the Pareto front of step time and memory.
void mark_front(std::vector<TuneTrial>& trials);

Json tune_json(const std::vector<TuneAxis>& axes, const TuneResult& result);

}  // namespace weir
