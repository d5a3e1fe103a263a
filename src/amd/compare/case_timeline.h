// A side of a comparison from a timeline: of our own runs, on any device, or of any trace that can be imported. Knows
// spans; no AMD file.
#pragma once

#include <string>
#include <vector>

#include "amd/compare/case_side.h"
#include "measure/timeline.h"

namespace weir::amd {

// Rejects a timeline without a kernel.
CaseSide side_of_timeline(const Timeline& timeline, const std::string& name);

}  // namespace weir::amd
