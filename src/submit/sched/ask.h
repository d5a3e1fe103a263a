// Requests to a running daemon on behalf of a user. Never waits for long.
#pragma once

#include <filesystem>

#include "base/json.h"

namespace weir::scheduler {

// Throw if no daemon answers, with advice.
Json ask_status(const std::filesystem::path& socket);  // "schema": "weir.sched_status/1"
// Returns when the daemon has ended and another one can be started.
void ask_stop(const std::filesystem::path& socket);

}  // namespace weir::scheduler
