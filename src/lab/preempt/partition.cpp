// The intruder has a part of the device to itself; the victim has the rest.
#include "lab/preempt/arena.h"
#include "lab/preempt/contest.h"
#include "lab/preempt/list.h"

namespace weir::preempt::mechanism_list {
namespace {

// The minimum for a green context on Hopper, and 2 to 8 % of large GPUs.
constexpr int kIntruderUnits = 8;

Capability offered_partition(Device& device) {
  const DeviceInfo info = device.info();
  if (const Capability can = can_observe(info); !can) return can;
  if (!info.compute_units) return info.compute_units;
  if (info.multiprocessors.value.value_or(kIntruderUnits + 1) <= kIntruderUnits)
    return lacking("the device is too small to be divided");
  return {};
}

}  // namespace

Mechanism partition() {
  return {.name = "partition",
          .level = "",
          .summary = "the intruder has compute units of its own, the victim the others",
          .offered = offered_partition,
          .observe = [](const Experiment& experiment,
                        const Victim* victim) { return hold_contest(experiment, victim, {}); },
          .device_options =
              [](const DeviceOptions& usual) {
                DeviceOptions options = usual;
                if (options.compute_units == 0) options.compute_units = kIntruderUnits;
                options.rest_stream = kVictimStream;
                return options;
              }};
}

}  // namespace weir::preempt::mechanism_list
