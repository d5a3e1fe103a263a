// The lanes that a log and snapshots fill: host threads with their calls, streams, hardware queues with their packets.
// Knows the log's events; nothing of the kernel's trace.
#pragma once

#include <atomic>

#include "amd/join/join_load.h"
#include "amd/join/timeline_events.h"

namespace weir::amd {

// Reads each log of `capture` once more.
void write_log_lanes(const LoadedCapture& capture, const Join& join, TimelineEvents& events,
                     const std::atomic<bool>* stop);

}  // namespace weir::amd
