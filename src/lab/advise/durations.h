// How long each command of a model takes by itself: what its neighbours on the device cost it is taken out, by the
// rules by which the replay lets them share, and the wait of collectives for their last rank.
#pragma once

#include "lab/advise/replay_model.h"

namespace weir::advise {

// Needs commands; fills in their work, the slowdowns and the meetings.
void take_durations(const Timeline& timeline, ReplayModel& model);

}  // namespace weir::advise
