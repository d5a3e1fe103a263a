// Which spans of a timeline are work of the device, and in which order. What analyses agree on.
#pragma once

#include <cstdint>
#include <vector>

#include "measure/timeline.h"

namespace weir {

inline bool is_timed(const Span& span) noexcept {
  return span.started_ns != kNoTime && span.ended_ns != kNoTime && span.ended_ns >= span.started_ns;
}

// Host functions occupy their stream, but not the device.
inline bool is_device_work(const Span& span) noexcept { return is_timed(span) && span.kind != SpanKind::host; }

// When the driver had it; when it was asked for, where that is not known; kNoTime where neither is.
inline std::int64_t handed_over_ns(const Span& span) noexcept {
  return span.accepted_ns != kNoTime ? span.accepted_ns : span.submitted_ns;
}

// Indices of the device's work by start, then by end, then as given.
std::vector<std::uint32_t> device_work_by_start(const Timeline& timeline);

// The same, of everything that has times: what streams see.
std::vector<std::uint32_t> timed_by_start(const Timeline& timeline);

}  // namespace weir
