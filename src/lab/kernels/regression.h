// Finds cases of one bench summary that are slower or less accurate than in another, without false alarms for runs of
// the same code. Reads weir.bench/2 documents; runs nothing.
#pragma once

#include <string>

#include "base/json.h"

namespace weir::bench {

struct RegressionOptions {
  double latency = 0.10;    // smaller slowdowns do not matter
  double accuracy = 1e-3;   // nor do smaller drifts of an error
  double certainty = 0.99;  // of a slowdown, over all cases together
};

// The block "regressions" of summary.json and all of regressions.md: {"baseline": name, "options", "verdict":
// "regressed"|"same"|"ambiguous", "cases": [{"key", "verdict": slower|faster|same|ambiguous|less_accurate|failed|
// not_comparable|new|gone, "is_regression", "ratio", "interval", "p", "adjusted_p", "machine_ratio", "before_ns":
// {"p50"}, "after_ns": {"p50"}, "rounds_before", "rounds_after", "accuracy_before", "accuracy_after", "reason"}],
// "counts": {verdict: count}, "notes": [..]}. The worst come first. Rejects a baseline that is no weir.bench/2.
Json compare_summaries(const Json& baseline, const Json& current, const std::string& baseline_name,
                       const RegressionOptions& options = {});

// 3 if something regressed, otherwise 0. A run in which a kernel failed exits with 1 before this is called.
int exit_code(const Json& regressions);

}  // namespace weir::bench
