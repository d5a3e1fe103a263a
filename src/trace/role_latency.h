// How long commands of one role took from being submitted to their end. Reads timelines only.
#pragma once

#include <vector>

#include "measure/timeline.h"

namespace weir {

std::vector<double> role_latencies(const Timeline& timeline, std::uint8_t role);

}  // namespace weir
