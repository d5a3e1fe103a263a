// The policies by name, for list.cpp and for the files that define them.
#pragma once

#include "submit/sched/policy.h"

namespace weir::scheduler::policy_list {

Policy fifo();
Policy priority();
Policy weighted_fair();
Policy earliest_deadline();
Policy time_slice();

}  // namespace weir::scheduler::policy_list
