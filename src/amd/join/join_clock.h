// What log and trace tell of the same queue operations, as brackets for the clock solver. Knows that the runtime logs
// before and after it calls KFD.
#pragma once

#include "amd/join/join.h"

namespace weir::amd {

// `processes`: one for each of input.logged. Those without a process of the host give no bracket.
ClockOffset offset_of(const JoinInput& input, const std::vector<JoinedProcess>& processes);

// Whether a call may be this process': it is, or the trace does not say whose it is.
bool may_be_of(const ftrace::KfdSpan& call, int host_pid);

}  // namespace weir::amd
