// No mechanism: both are equal, and share one hardware queue if that can be requested.
#include "lab/preempt/arena.h"
#include "lab/preempt/contest.h"
#include "lab/preempt/list.h"

namespace weir::preempt::mechanism_list {

Mechanism none() {
  return {.name = "none",
          .level = "",
          .summary = "equal streams on one hardware queue, where their number can be chosen",
          .offered = [](Device& device) { return can_observe(device.info()); },
          .observe = [](const Experiment& experiment,
                        const Victim* victim) { return hold_contest(experiment, victim, {}); },
          .device_options =
              [](const DeviceOptions& usual) {
                DeviceOptions options = usual;
                options.hardware_queues = 1;
                return options;
              }};
}

}  // namespace weir::preempt::mechanism_list
