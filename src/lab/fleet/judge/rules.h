// What needs no statistics of speed: wrong outputs, what could not be examined, and errors that hardware counts. The
// rules and their reasons are in docs/fleet.md.
#pragma once

#include "lab/fleet/judge/table.h"

namespace weir::fleet {

void add_wrong(const JudgeTable& table, FleetReport& report);
void add_missing(const JudgeTable& table, FleetReport& report);
void add_faults(const JudgeTable& table, FleetReport& report);

}  // namespace weir::fleet
