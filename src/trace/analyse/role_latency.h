// How long commands of one role took to their end, from when the program wanted them: enqueued, where something stood
// between it and the device, else submitted. Reads timelines only.
#pragma once

#include <vector>

#include "measure/timeline.h"

namespace weir {

std::vector<double> role_latencies(const Timeline& timeline, std::uint8_t role);

}  // namespace weir
