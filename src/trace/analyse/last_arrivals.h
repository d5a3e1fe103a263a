// When the last rank came to each collective of a timeline of several ranks on one clock (trace/clock_alignment.h).
#pragma once

#include <optional>
#include <vector>

#include "measure/timeline.h"
#include "trace/analyse/exposed_causes.h"
#include "trace/clock_alignment.h"

namespace weir {

// By device; spans are those of its slice (trace/slice.h). Empty for one rank, and for ranks that could not be aligned.
std::vector<std::vector<LastArrival>> last_arrivals(const Timeline& aligned,
                                                    const std::optional<ClockAlignment>& alignment);

}  // namespace weir
