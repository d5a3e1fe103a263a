// The child's side of `weir preempt`: observes what a file asks for in a process of its own, because a driver reads
// some settings once, or because the victim has to be somebody else. Tells what comes of it as lines of JSON.
#pragma once

#include <string>

namespace weir::cli {

// Requests and what is told:
//   {"task": "observe", "mechanism", "device", "sim", "hardware_queues", "plan", "victim"}
//     {"event": "progress", "done", "of"}              now and then
//     {"event": "observed", "observation": {...}}
//   {"task": "victim", ...}                            until a SIGTERM comes
//     {"event": "running"}                             the victim keeps the device busy from here on
//     {"event": "observed", "observation": {...}}
// Rejects a file that is no request.
int run_preempt_child(const std::string& file);

}  // namespace weir::cli
