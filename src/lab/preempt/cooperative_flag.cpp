// The victim's kernels check a flag between blocks: they leave the device when the intruder comes, and resume where
// they stopped when it has ended.
#include "lab/preempt/arena.h"
#include "lab/preempt/contest.h"
#include "lab/preempt/list.h"

namespace weir::preempt::mechanism_list {

Mechanism cooperative_flag() {
  return {.name = "cooperative_flag",
          .level = "Lv2",
          .summary = "kernels end at the next block when told so, and go on where they stopped",
          .offered = [](Device& device) { return can_observe(device.info()); },
          .observe =
              [](const Experiment& experiment, const Victim* victim) {
                // Two: one that runs, and one that follows immediately.
                return hold_contest(experiment, victim, {.waits_for_end = true, .is_stoppable = true, .in_flight = 2});
              }};
}

}  // namespace weir::preempt::mechanism_list
