// What this program does about a run that hangs: reports where it is stuck, and ends. Knows the process; the diagnosis
// is in run/hang.h.
#pragma once

#include <cstdint>
#include <string>

#include "run/runner.h"

namespace weir::cli {

// `--hang-timeout` as typed ("60s"); empty: off (0). Rejects anything but a time above 0.
std::int64_t hang_timeout_ns(const std::string& flag);

// Starts watching the run. On a hang, the report and the stacks of all threads go to stderr in one write, and the
// process ends with exit code 1 within 4 seconds, whatever its threads are stuck in. Other ranks have as long to write
// theirs: each ends itself, and the launcher, or the watch over processes, ends those that wait elsewhere.
void watch_hangs(RunControl& control, const std::string& flag);

// True while that is in progress: other code that would end this process must leave it alone.
bool is_ending_hung() noexcept;

}  // namespace weir::cli
