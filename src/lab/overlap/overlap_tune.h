// Searches settings of a training step for the least exposed communication, within a budget of time. Knows settings and
// outcomes; how a trial is run is the caller's.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace weir {

inline constexpr const char* kOverlapTuneSchema = "weir.overlap_tune/1";

// What may be changed, and to what. The first value is where the search starts.
struct TuneAxis {
  std::string key;
  std::vector<std::string> values;
};

struct TuneTrial {
  std::vector<std::string> values;  // by axis
  std::optional<double> exposed_ns, step_ns, efficiency;
  std::optional<double> memory_bytes;
  std::string failure;  // why there is nothing
  double seconds = 0;
  bool is_on_front = false;  // no other is faster with as little memory, or as fast with less

  bool is_usable() const { return failure.empty() && step_ns.has_value(); }
};

struct TuneControl {
  // Runs one trial: fills everything but `values`. False: stop.
  std::function<bool(TuneTrial& trial)> run;
  std::function<double()> elapsed_seconds;
  double budget_seconds = 300;
};

struct TuneResult {
  std::vector<TuneTrial> trials;    // in the order in which they ran
  std::size_t combinations = 0;     // that there are
  std::optional<std::size_t> best;  // least exposed; of those within 2 % of it the fastest
  bool is_complete = false;         // all combinations were tried, or no single change is better
  bool is_interrupted = false;
};

// Coordinate descent from the first values: one axis at a time, keeping what exposes less, until no single change
// helps; then combinations that were not tried, in a seeded order, while the budget lasts. A trial begins only where
// the last one's time is left.
TuneResult tune_overlap(const std::vector<TuneAxis>& axes, const TuneControl& control);

// Marks the trials that are on the front of step time against memory.
void mark_front(std::vector<TuneTrial>& trials);

Json tune_json(const std::vector<TuneAxis>& axes, const TuneResult& result);

}  // namespace weir
