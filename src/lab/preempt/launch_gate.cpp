// The host keeps few of the victim's kernels on the device, and holds back further ones while the intruder is there.
// Kernels that already run are completed.
#include <algorithm>

#include "lab/preempt/arena.h"
#include "lab/preempt/contest.h"
#include "lab/preempt/list.h"

namespace weir::preempt::mechanism_list {

Mechanism launch_gate() {
  return {.name = "launch_gate",
          .level = "Lv1",
          .summary = "few kernels in flight, and none launched while the intruder is there",
          .offered = [](Device& device) { return can_observe(device.info()); },
          .observe =
              [](const Experiment& experiment, const Victim* victim) {
                return hold_contest(experiment, victim,
                                    {.waits_for_end = true, .in_flight = std::max(1u, experiment.plan->in_flight)});
              }};
}

}  // namespace weir::preempt::mechanism_list
