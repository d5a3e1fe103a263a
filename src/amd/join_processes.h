// Which process of the host a process of the log is: a log has the numbers of its own PID namespace, kernel and debugfs
// those of the host. Never by equal numbers alone.
#pragma once

#include "amd/join.h"

namespace weir::amd {

// One for each of input.logged.
std::vector<JoinedProcess> match_processes(const JoinInput& input);

}  // namespace weir::amd
