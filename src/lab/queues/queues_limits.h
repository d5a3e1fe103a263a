// The experiments of `weir queues limits` in a row, and their document. Prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "lab/queues/copy_overlap.h"
#include "lab/queues/limits.h"
#include "lab/queues/priority_levels.h"
#include "lab/queues/queues_document.h"

namespace weir {

struct LimitsRequest {
  int streams = 160;                       // most, for kernels at the same time
  int launches = 4096;                     // most, behind a held kernel
  std::uint64_t copy_bytes = 16ull << 20;  // of one copy
  std::function<void(std::string_view phase, int done, int total)> progress;
};

// A weir.queues/1 document with the member "limits".
Json measure_limits(Device& device, const LimitsRequest& request, const RunContext& context);

Json to_json(const QueueDepth& depth);
Json to_json(const ResidentLimit& limit);
Json to_json(const CopyOverlap& overlap);
Json to_json(const PriorityLevels& levels);

}  // namespace weir
