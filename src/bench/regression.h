// Whether cases of one bench summary are slower or less accurate than those of another, so that runs of the same code
// do not cry wolf. Reads weir.bench/1 documents; runs nothing.
#pragma once

#include <string>

#include "base/json.h"

namespace weir::bench {

struct RegressionOptions {
  double latency = 0.10;    // a slowdown up to this does not matter
  double accuracy = 1e-3;   // nor does a drift of an error up to this
  double certainty = 0.99;  // of a slowdown
};

// The block "regressions" of summary.json and all of regressions.md: {"baseline": name, "options", "verdict":
// "regressed"|"same"|"cannot_say", "cases": [{"key", "verdict": slower|faster|same|ambiguous|less_accurate|failed|
// new|gone, "ratio", "interval", "p", "accuracy_before", "accuracy_after", "reason"}], "notes": [..]}
// Rejects a baseline that is no weir.bench/1.
Json compare_summaries(const Json& baseline, const Json& current, const std::string& baseline_name,
                       const RegressionOptions& options = {});

// 3 where something regressed, else 0.
int exit_code(const Json& regressions);

}  // namespace weir::bench
