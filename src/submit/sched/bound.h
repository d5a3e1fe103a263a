// Decides who must keep the device's queue short: clients that may have to yield to another one. Asks the policy
// itself, which is a pure function. Knows no process.
#pragma once

#include "submit/sched/policy.h"

namespace weir::scheduler {

// Whether there is a situation in which a client with these terms waits for the other one: tries who came first, who
// has used more and whose turn it is. Ignores ageing, which lets everybody pass at some time for one slice.
bool may_yield(const Policy& policy, const Settings& settings, const Terms& terms, const Terms& other);

}  // namespace weir::scheduler
