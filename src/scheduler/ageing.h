// Nobody starves, whatever the policy. Knows ranks and how long clients were kept waiting; no policy by name.
#pragma once

#include "scheduler/policy.h"

namespace weir::scheduler {

// The policy's ranks; but of those that were kept waiting for settings.ageing_ns the one that counts from earliest
// comes first, for one slice. With n clients everybody who is active is among the first for a slice, all together,
// within ageing_ns + n slices.
Ranking ranks_with_ageing(const Policy& policy, const Situation& situation);

}  // namespace weir::scheduler
