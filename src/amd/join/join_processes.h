// Which process of the host a process of the log is: a log has the numbers of its own PID namespace, kernel and debugfs
// those of the host. Never by equal numbers alone.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>

#include "amd/join/join.h"

namespace weir::amd {

// Processes of the host that were seen with a ring, in whichever part.
using RingOwners = std::unordered_map<std::uint64_t, std::set<int>>;
RingOwners ring_owners(const JoinInput& input);

// One for each of input.logged.
std::vector<JoinedProcess> match_processes(const JoinInput& input);

}  // namespace weir::amd
