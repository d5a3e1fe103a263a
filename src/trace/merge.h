// Several captures as ranks of one timeline. Renumbers names, lanes, calls and spans; leaves every time as it is
// (trace/clock_alignment.h does that).
#pragma once

#include <vector>

#include "measure/timeline.h"

namespace weir {

// Spans sorted by start. A part without lanes gets a process, a device and streams of its own; ranks that occur twice
// are renumbered, and a note says so. Rejects what exceeds 65,535 processes, devices or streams.
Timeline merge(std::vector<Timeline> parts);

// Spans by start (then end, stream), and everything that counts them follows.
void sort_by_start(Timeline& timeline);

}  // namespace weir
