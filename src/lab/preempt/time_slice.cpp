// The victim is another process: the driver divides the device's time between both.
#include "lab/preempt/arena.h"
#include "lab/preempt/contest.h"
#include "lab/preempt/list.h"

namespace weir::preempt::mechanism_list {
namespace {

Capability offered_time_slice(Device& device) {
  const DeviceInfo info = device.info();
  if (const Capability can = can_observe(info); !can) return can;
  if (info.is_virtual) return lacking("a simulated device belongs to one process");
  return {};
}

// The intruder is alone here, while run_victim() keeps the other process busy. A victim in this process would share its
// context, and there would be no time slices.
Observation observe_time_slice(const Experiment& experiment, const Victim*) {
  return hold_contest(experiment, nullptr, {});
}

}  // namespace

Mechanism time_slice() {
  return {.name = "time_slice",
          .level = "",
          .summary = "two processes, between which the driver divides the device's time",
          .offered = offered_time_slice,
          .observe = observe_time_slice,
          .is_between_processes = true};
}

}  // namespace weir::preempt::mechanism_list
