#include "trace/analyse/role_latency.h"

namespace weir {

std::vector<double> role_latencies(const Timeline& timeline, std::uint8_t role) {
  std::vector<double> latencies;
  for (const Span& span : timeline.spans) {
    if (span.role != role || span.submitted_ns == kNoTime || span.ended_ns == kNoTime) continue;
    // Or whoever holds commands back would look quick.
    const std::int64_t wanted_ns = span.enqueued_ns != kNoTime ? span.enqueued_ns : span.submitted_ns;
    latencies.push_back(static_cast<double>(span.ended_ns - wanted_ns));
  }
  return latencies;
}

}  // namespace weir
