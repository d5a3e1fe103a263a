// The mechanisms by name, for list.cpp and for the files that define them.
#pragma once

#include "lab/preempt/experiment.h"

namespace weir::preempt::mechanism_list {

Mechanism none();
Mechanism queues();
Mechanism priority();
Mechanism launch_gate();
Mechanism cooperative_flag();
Mechanism partition();
Mechanism time_slice();
Mechanism kfd_suspend();

}  // namespace weir::preempt::mechanism_list
