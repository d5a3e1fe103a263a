// The part of a weir.analysis/1 document that is about one device.
#pragma once

#include <cstdint>

#include "run/analyze.h"

namespace weir {

// Times in it count from `origin_ns`.
Json analyze_device(const Timeline& whole, std::uint16_t device, std::int64_t origin_ns, const AnalyzeOptions& options);

}  // namespace weir
