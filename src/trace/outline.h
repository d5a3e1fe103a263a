// What other processes must know of a timeline to put its ranks on one clock and to compare their collectives: lanes,
// collectives, and the commands that are first or last. Knows no other timeline and sends nothing.
#pragma once

#include "measure/timeline.h"

namespace weir {

// Processes and devices keep their numbers; each device that has commands has one stream. Of the commands it holds the
// collectives and, of each device, those that start first and end last by any measure that analyses use, so that ranges
// of time and the list of used devices are those of the whole. A span's `command` is its position in the slice of its
// device (trace/analyse/slice.h). Without calls, dependencies and queues; collectives match as those of the whole do.
Timeline outline(const Timeline& whole);

}  // namespace weir
