// Which row a sighting of a snapshot and a creation of the trace belong to. A match needs something that both tell, no
// contradiction, and no other that would do as well.
#pragma once

#include "amd/join/join.h"

namespace weir::amd {

// Rows of the log's queues, in its order, with their streams.
std::vector<JoinedQueue> rows_of_log(const JoinInput& input, const std::vector<JoinedProcess>& processes);

// Adds what snapshots show to the rows, and rows for queues that the log does not have.
void match_snapshots(const JoinInput& input, Join& join);

// Adds what the trace shows to the rows, and rows for queues that were seen there alone. After match_snapshots.
void match_trace(const JoinInput& input, Join& join);

}  // namespace weir::amd
