// Who has to keep the device's queue short: a client that may have to make way for another one. Asks the policy itself,
// which is a pure function. Knows no process.
#pragma once

#include "submit/sched/policy.h"

namespace weir::scheduler {

// Whether there is a situation in which a client with these terms waits for the other one: tried over who came first,
// who has used more and whose turn it is. Ageing is left out: it lets everybody pass at some time, for one slice.
bool may_yield(const Policy& policy, const Settings& settings, const Terms& terms, const Terms& other);

}  // namespace weir::scheduler
