// Links between nodes: tells a slow link from a slow node, whose links are all slow. Knows bandwidths of pairs; knows
// no device.
#pragma once

#include "lab/fleet/judge/table.h"

namespace weir::fleet {

void add_link_findings(const JudgeTable& table, FleetReport& report);

}  // namespace weir::fleet
