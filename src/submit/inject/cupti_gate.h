// The part of libweir_cupti.so that holds a program's launches, for `weir sched run`.
#pragma once

namespace weir::inject {

// Where WEIR_SCHED_SOCKET names a scheduler; once. The program runs unscheduled, which is said on stderr, where
// anything is missing.
void start_gate() noexcept;

}  // namespace weir::inject
