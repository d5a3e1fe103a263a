// Who is compared with whom: devices of one model with the same settings, unless too few have a setting. Knows which
// settings count; judges no device.
#pragma once

#include <vector>

#include "lab/fleet/judge/facts.h"

namespace weir::fleet {

// Gives each row of `table` its group, fills FleetReport::groups (without their figures), and adds a finding for each
// setting or version that makes many devices faster or slower than others of their model.
void make_groups(JudgeTable& table, const std::vector<FactColumn>& facts, FleetReport& report);

// The natural spread that is expected of a figure of this concern where there are too few peers to show it.
double prior_spread(Concern concern);

}  // namespace weir::fleet
