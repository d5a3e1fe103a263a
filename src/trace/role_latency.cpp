#include "trace/role_latency.h"

namespace weir {

std::vector<double> role_latencies(const Timeline& timeline, std::uint8_t role) {
  std::vector<double> latencies;
  for (const Span& span : timeline.spans)
    if (span.role == role && span.submitted_ns != kNoTime && span.ended_ns != kNoTime)
      latencies.push_back(static_cast<double>(span.ended_ns - span.submitted_ns));
  return latencies;
}

}  // namespace weir
