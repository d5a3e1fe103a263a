// How somebody else's program becomes a client of the scheduler: the part that all vendors' libraries share.
#pragma once

#include "submit/inject/launch_gate.h"

namespace weir::inject {

// Whether `weir sched run` started this program.
bool is_scheduled() noexcept;

// Takes a seat for the process and keeps it until the end. Returns null, with one message on stderr, if there is none:
// the program then runs unscheduled. Call once; `driver` stays in use.
LaunchGate* join(const GateDriver& driver) noexcept;

// Prints one line on stderr: the program continues without the scheduler.
void report_unscheduled(const char* reason) noexcept;

}  // namespace weir::inject
