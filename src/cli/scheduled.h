// This process as a client of the scheduler's daemon, if `weir sched run` started it: commands to its device pass the
// daemon's gate. If no daemon answers, it runs unscheduled and reports that.
#pragma once

#include <functional>
#include <memory>

#include "base/json.h"
#include "device/device.h"

namespace weir::cli {

// Opens a device, gated where this process runs under a scheduler and the device runs in real time. Ranks wait for each
// other, so runs of several ranks are not held. Rejects terms that `weir sched run` cannot have written.
std::unique_ptr<Device> open_scheduled(const std::function<std::unique_ptr<Device>()>& open,
                                       const Communicator* communicator, bool is_quiet);

// For results: policy, terms, and what was held so far; null where scheduling was not requested.
Json scheduling_facts();

}  // namespace weir::cli
