// This process as a client of the scheduler's daemon, where `weir sched run` started it: what its device is given
// passes the daemon's gate. Where no daemon answers it runs on unscheduled, and says so.
#pragma once

#include <functional>
#include <memory>

#include "base/json.h"
#include "device/device.h"

namespace weir::cli {

// Opens a device, gated where this process runs under a scheduler and the device runs anything in real time. Ranks wait
// for each other, so a run of several is not held. Rejects terms that `weir sched run` cannot have written.
std::unique_ptr<Device> open_scheduled(const std::function<std::unique_ptr<Device>()>& open,
                                       const Communicator* communicator, bool is_quiet);

// What results say about it: policy, terms, what was held so far; null where nobody asked to be scheduled.
Json scheduling_facts();

}  // namespace weir::cli
