// Why communication was exposed, over all ranks: causes with their shares, advice and worst stretches, as a document.
#pragma once

#include <vector>

#include "base/json.h"
#include "measure/timeline.h"

namespace weir {

// `timelines` by rank, on one clock, described: ranks ran the same step, so commands have the same numbers. Times are
// per step, the mean over ranks. Sorted by time; causes that never occurred are left out.
Json causes_json(const std::vector<const Timeline*>& timelines);

}  // namespace weir
