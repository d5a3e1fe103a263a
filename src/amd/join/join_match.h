// The steps of a join: which host process a process of the log is, the offset of the clocks, and which row a queue in a
// snapshot and a creation in the trace belong to. A match needs a value that both have, no contradiction, and no other
// candidate that fits as well.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>

#include "amd/join/join.h"

namespace weir::amd {

// A log has pids of its own PID namespace, kernel and debugfs those of the host: processes are never matched by equal
// pids alone.

// Host processes that were seen with a ring, in any part.
using RingOwners = std::unordered_map<std::uint64_t, std::set<int>>;
RingOwners ring_owners(const JoinInput& input);

// One for each of input.logged.
std::vector<JoinedProcess> match_processes(const JoinInput& input);

// Queue operations that both log and trace show, as brackets for the clock solver: the runtime logs before and after it
// calls KFD. `processes`: one for each of input.logged. Those without a host process give no bracket.
ClockOffset offset_of(const JoinInput& input, const std::vector<JoinedProcess>& processes);

// Whether a call may belong to this process: it does, or the trace does not name its process.
bool may_be_of(const ftrace::KfdSpan& call, int host_pid);

// Rows for the log's queues, in its order, with their streams.
std::vector<JoinedQueue> rows_of_log(const JoinInput& input, const std::vector<JoinedProcess>& processes);

// Adds values from snapshots to the rows, and rows for queues that the log does not show.
void match_snapshots(const JoinInput& input, Join& join);

// Adds values from the trace to the rows, and rows for queues that appear only there. Call after match_snapshots.
void match_trace(const JoinInput& input, Join& join);

}  // namespace weir::amd
