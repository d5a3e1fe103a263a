// The policies: a file each beside this one, and its name here.
#pragma once

#include "submit/sched/policy.h"

#define WEIR_POLICIES fifo(), priority(), weighted_fair(), earliest_deadline(), time_slice()

namespace weir::scheduler::policy_list {
Policy WEIR_POLICIES;
}  // namespace weir::scheduler::policy_list
