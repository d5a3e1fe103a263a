// Nobody starves, whatever the policy. Knows ranks and how long clients were kept waiting; no policy by name.
#pragma once

#include "submit/sched/policy.h"

namespace weir::scheduler {

// The policy's ranks; but of those that wait the one that counts from earliest comes first, once it has not been first
// for a slice, all together, for settings.ageing_ns; until it has been. So with n clients everybody who is active is
// among the first for a slice, all together, within ageing_ns + n slices, and waits no longer than ageing_ns + n - 1
// slices at a stretch: the others' slices are all that can come before its own.
Ranking ranks_with_ageing(const Policy& policy, const Situation& situation);

}  // namespace weir::scheduler
