// The summary of `weir bench` for people: six sections, whatever happened. Reads weir.bench/1 documents; runs nothing.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// For a terminal: the quickest cases, and everything that went wrong. At most 80 columns.
std::string bench_text(const Json& summary);
// summary.md: everything.
std::string bench_markdown(const Json& summary);

// One case, as it comes: "softmax/cpu/fp32: ok, p50 1.23 ms".
std::string bench_line(const Json& entry);

// What --list shows (cli/bench_plan.h).
std::string bench_plan_text(const Json& plan);
std::string bench_plan_markdown(const Json& plan);

}  // namespace weir
