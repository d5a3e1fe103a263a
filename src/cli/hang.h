// What this program does about a run that does not go on: says where it stands, and ends. Knows the process; the
// diagnosis is run/hang.h's.
#pragma once

#include <cstdint>
#include <string>

#include "run/runner.h"

namespace weir::cli {

// `--hang-timeout` as typed, in seconds; empty: off (0). Rejects what is not a number above 0.
std::int64_t hang_timeout_ns(const std::string& flag);

// Has the run watched. On a hang the report and the stacks of all threads go to stderr in one write, and the process
// ends with exit code 1 within 4 seconds, whatever its threads are stuck in. Other ranks have as long to write their
// own: each ends itself, and the launcher, or the watch over processes, ends those that wait elsewhere.
void watch_hangs(RunControl& control, const std::string& flag);

// True while the above is under way: whoever else would end this process shall leave it alone.
bool is_ending_hung() noexcept;

}  // namespace weir::cli
