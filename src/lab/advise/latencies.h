// What every start of a command is made of: the cause that came last, and a latency after it. A latency far beyond the
// usual one is not kept: that start is late for a reason that the trace does not show, and the replay will be early
// there.
#pragma once

#include "lab/advise/replay_model.h"

namespace weir::advise {

// Needs commands, actions, waits and edges; fills in latencies, and what is late.
void take_latencies(const Timeline& timeline, ReplayModel& model);

}  // namespace weir::advise
