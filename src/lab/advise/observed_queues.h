// On which hardware queue each command of a trace was, by the trace itself or by the rule with which the driver gives
// queues to streams.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/advise/replay_model.h"

namespace weir::advise {

// By command: the one that was right before it in its queue, if it is of another stream; kNone where there is none.
std::vector<std::uint32_t> ahead_in_queue(const Timeline& timeline, const ReplayModel& model);

}  // namespace weir::advise
