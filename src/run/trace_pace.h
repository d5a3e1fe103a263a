// How long two traces took for the same work: from one iteration to the next or, where none are marked, from one start
// of a recurring kernel to the next. Knows timelines; decides nothing and prints nothing.
#pragma once

#include <string>

#include "measure/timeline.h"
#include "run/compare.h"

namespace weir {

// If more than this share of a repetition's device time was spent on commands that only one of the traces has, they did
// different work.
inline constexpr double kOtherWork = 0.1;

struct TracePace {
  bool is_marked = false;  // repetitions are the iterations that the program marked
  std::string kernel;      // else the kernel whose starts delimit them; empty where nothing recurs in both traces
  MetricComparison times;  // from the start of one repetition to the next, mean over devices; without a verdict
  // test / baseline of the means, which unlike the medians include rare pauses.
  std::optional<double> mean_ratio;
  double baseline_commands = 0, test_commands = 0;  // per repetition, mean over devices
  double other_work = 0;                            // see kOtherWork
};

// Needs device commands on both sides. Without a p where nothing can be tested; the reason says why.
TracePace measure_pace(const Timeline& baseline, const Timeline& test, const CompareOptions& options);

}  // namespace weir
