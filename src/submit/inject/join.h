// How a program of somebody else becomes a client of the scheduler: what all vendors' libraries do alike.
#pragma once

#include "submit/inject/launch_gate.h"

namespace weir::inject {

// Whether `weir sched run` started this program.
bool is_scheduled() noexcept;

// Takes a seat for the process and keeps it until the end. Null, said once on stderr, where there is none: the program
// runs unscheduled then. To be called once; `driver` stays in use.
LaunchGate* join(const GateDriver& driver) noexcept;

// One line on stderr: the program runs on as if we were not there.
void say_unscheduled(const char* reason) noexcept;

}  // namespace weir::inject
