// One hardware queue each: neither waits behind the other's kernels, but nothing decides who gets the device.
#include "lab/preempt/arena.h"
#include "lab/preempt/contest.h"
#include "lab/preempt/list.h"

namespace weir::preempt::mechanism_list {
namespace {

Capability offered_queues(Device& device) {
  const DeviceInfo info = device.info();
  if (const Capability can = can_observe(info); !can) return can;
  if (info.hardware_queues.value.value_or(2) < 2) return lacking("the device has one hardware queue");
  return {};
}

}  // namespace

Mechanism queues() {
  return {.name = "queues",
          .level = "",
          .summary = "equal streams, each on a hardware queue of its own",
          .offered = offered_queues,
          .observe = [](const Experiment& experiment, const Victim* victim) {
            return hold_contest(experiment, victim, {});
          }};
}

}  // namespace weir::preempt::mechanism_list
