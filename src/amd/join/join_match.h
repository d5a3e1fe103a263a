// The steps of a join: which process of the host a process of the log is, how far the clocks are apart, and which row a
// sighting of a snapshot and a creation of the trace belong to. A match needs something that both tell, no
// contradiction, and no other that would do as well.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>

#include "amd/join/join.h"

namespace weir::amd {

// A log has the numbers of its own PID namespace, kernel and debugfs those of the host: processes are never matched by
// equal numbers alone.

// Processes of the host that were seen with a ring, in whichever part.
using RingOwners = std::unordered_map<std::uint64_t, std::set<int>>;
RingOwners ring_owners(const JoinInput& input);

// One for each of input.logged.
std::vector<JoinedProcess> match_processes(const JoinInput& input);

// What log and trace tell of the same queue operations, as brackets for the clock solver: the runtime logs before and
// after it calls KFD.
// `processes`: one for each of input.logged. Those without a process of the host give no bracket.
ClockOffset offset_of(const JoinInput& input, const std::vector<JoinedProcess>& processes);

// Whether a call may be this process': it is, or the trace does not say whose it is.
bool may_be_of(const ftrace::KfdSpan& call, int host_pid);

// Rows of the log's queues, in its order, with their streams.
std::vector<JoinedQueue> rows_of_log(const JoinInput& input, const std::vector<JoinedProcess>& processes);

// Adds what snapshots show to the rows, and rows for queues that the log does not have.
void match_snapshots(const JoinInput& input, Join& join);

// Adds what the trace shows to the rows, and rows for queues that were seen there alone. After match_snapshots.
void match_trace(const JoinInput& input, Join& join);

}  // namespace weir::amd
