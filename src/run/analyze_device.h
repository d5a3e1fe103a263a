// The part of a weir.analysis/1 document that is about one device.
#pragma once

#include <cstdint>
#include <span>

#include "run/analyze.h"
#include "trace/analyse/exposed_causes.h"

namespace weir {

// Times in it count from `origin_ns`. `arrivals` of the other ranks, by spans of the device's slice.
Json analyze_device(const Timeline& whole, std::uint16_t device, std::int64_t origin_ns,
                    std::span<const LastArrival> arrivals, const AnalyzeOptions& options);

}  // namespace weir
