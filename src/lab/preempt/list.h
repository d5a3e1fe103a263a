// The mechanisms, weakest first: a file each beside this one, and its name here.
#pragma once

#include "lab/preempt/experiment.h"

#define WEIR_MECHANISMS \
  none(), queues(), priority(), time_slice(), partition(), launch_gate(), cooperative_flag(), kfd_suspend()

namespace weir::preempt::mechanism_list {
Mechanism WEIR_MECHANISMS;
}  // namespace weir::preempt::mechanism_list
