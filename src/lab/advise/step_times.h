// How long a step takes, in a replay and in the trace.
#pragma once

#include "lab/advise/replay.h"

namespace weir::advise {

// The time from one step to the next, on average; the whole time where the trace marks no steps.
double step_ns(const ReplayModel& model, const Replayed& replayed);
// The same of the trace itself.
double observed_step_ns(const ReplayModel& model, const Timeline& timeline);

}  // namespace weir::advise
