// What a weir.overlap/1 document says, for people: how much communication was hidden, what it cost, what blocked the
// rest. Reads documents; measures nothing.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

Report overlap_report(const Json& summary);
// One row per point of a sweep: `summaries` as [{assignments, summary}].
Report overlap_sweep_report(const Json& points);

}  // namespace weir
