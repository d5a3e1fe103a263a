// Were streams with equal work served equally? Reads timelines only.
#pragma once

#include <optional>

#include "measure/timeline.h"

namespace weir {

// Jain's index over the service rates of streams that had the same number of commands of the same roles in an
// iteration; service rate = commands over the time from the iteration's first start to the stream's last end. Averaged
// over groups and iterations by streams. Nothing where no group has two streams.
std::optional<double> fairness(const Timeline& timeline);

}  // namespace weir
