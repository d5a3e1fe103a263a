// One device's part of a timeline, as a timeline of its own. Analyses look at one device at a time.
#pragma once

#include "measure/timeline.h"

namespace weir {

// Spans of `device` with their dependencies and collectives, calls and ranges of its process; lanes keep their numbers,
// so labels stay right. Names are not copied: they are the whole's. Everything where the timeline has no lanes.
Timeline slice(const Timeline& whole, std::uint16_t device);

// The commands of one iteration, with what ties them to each other; without calls and ranges.
Timeline only_iteration(const Timeline& whole, std::uint32_t iteration);

}  // namespace weir
