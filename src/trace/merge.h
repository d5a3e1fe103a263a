// Combines several captures as ranks of one timeline. Renumbers names, lanes, calls and spans; changes no times
// (trace/clock_alignment.h does that).
#pragma once

#include <vector>

#include "measure/timeline.h"

namespace weir {

// Spans are sorted by start. A part without lanes gets its own process, device and streams; duplicate ranks are
// renumbered, which a note reports. Rejects more than 65,535 processes, devices or streams.
Timeline merge(std::vector<Timeline> parts);

// Gives a timeline of spans only (from Weir's own sessions) its process, device and streams, as merge() does.
void add_lanes(Timeline& part);

// Sorts spans by start (then end, stream), and updates everything that refers to them by number.
void sort_by_start(Timeline& timeline);

}  // namespace weir
