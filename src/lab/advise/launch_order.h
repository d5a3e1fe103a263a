// Another order in which host threads could make the same launches: between waits of the host, those first that the
// longest chain of commands depends on. Chooses the order; runs nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/advise/replay_model.h"

namespace weir::advise {

// By action: the one that follows it on its thread (Change::next). Empty where no other order is possible, or nothing
// would move. Calls that submit nothing stay with the launch that they prepare, the next one of their thread.
std::vector<std::uint32_t> order_by_longest_chain(const ReplayModel& model);

}  // namespace weir::advise
