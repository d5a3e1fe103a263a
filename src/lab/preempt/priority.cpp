// The intruder's stream has the highest priority; its effect depends on the hardware.
#include "lab/preempt/arena.h"
#include "lab/preempt/contest.h"
#include "lab/preempt/list.h"

namespace weir::preempt::mechanism_list {
namespace {

Capability offered_priority(Device& device) {
  const DeviceInfo info = device.info();
  if (const Capability can = can_observe(info); !can) return can;
  if (!info.priorities) return info.priorities;
  if (info.highest_priority <= 0) return lacking("no priority of this device is above the normal one");
  return {};
}

Observation observe_priority(const Experiment& experiment, const Victim* victim) {
  return hold_contest(experiment, victim, {.intruder_priority = experiment.device->info().highest_priority});
}

}  // namespace

Mechanism priority() {
  return {.name = "priority",
          .level = "",
          .summary = "the intruder's stream has the highest priority, and a hardware queue of its own",
          .offered = offered_priority,
          .observe = observe_priority};
}

}  // namespace weir::preempt::mechanism_list
