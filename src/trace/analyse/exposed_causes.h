// Why nothing else ran while a device communicated: each nanosecond of exposed communication gets one cause. Reads the
// timeline of one device and, where known, when the other ranks arrived at its collectives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"
#include "trace/analyse/readiness.h"
#include "trace/rank_collectives.h"

namespace weir {

enum class ExposedCause : std::uint8_t {
  dependency,        // the next command waited for this collective, which could not have started earlier
  shallow_prefetch,  // the same, but the collective was held back by a command that still used its buffer
  shared_queue,      // the next command was ready but queued behind another stream's in its hardware queue
  launch_bound,      // the host had not submitted the next command yet, or had submitted the collective late
  no_room,           // the next command was ready, alone in its queue, and did not start: no free compute units
  rank_skew,         // the collective waited for the last rank
  step_end,          // nothing follows in this iteration
  unknown            // the source does not record it
};
inline constexpr std::size_t kExposedCauses = 8;

const char* to_string(ExposedCause cause) noexcept;
// What the cause means, and what to change, in one line each.
const char* meaning_of(ExposedCause cause) noexcept;
const char* advice_of(ExposedCause cause) noexcept;

inline constexpr std::size_t kMaxExposedStretches = 5;

struct ExposedStretch {
  std::int64_t from_ns = 0, to_ns = 0;
  std::uint32_t collective = 0;     // the one that ran: index into spans
  std::uint32_t blocked = kNoSpan;  // what would have run beside it; kNoSpan where nothing would have
  std::uint32_t blocker = kNoSpan;  // what held `blocked` (shallow_prefetch: the collective) back, where known
  std::int32_t queue = kNoQueue;    // for shared_queue
  std::uint32_t iteration = 0;      // of the collective

  bool operator==(const ExposedStretch&) const = default;
};

struct CauseTotal {
  double total_ns = 0;
  std::size_t stretches = 0;
  std::vector<ExposedStretch> worst;  // longest first, at most kMaxExposedStretches
};

struct ExposedCauses {
  std::array<CauseTotal, kExposedCauses> causes;  // by ExposedCause
  double exposed_ns = 0;                          // their sum: BusyTimes::exposed_communication_ns
  bool are_submissions_known = false;
  bool are_dependencies_known = false;
  std::string reason;  // why causes are unknown

  const CauseTotal& of(ExposedCause cause) const noexcept { return causes[static_cast<std::size_t>(cause)]; }
};

// `iterations` is as for breakdown(): without it, Span::iteration defines iterations. `arrivals` may be in any order;
// those that are late by less than the clock error are ignored.
ExposedCauses exposed_causes(const Timeline& timeline, std::span<const LastArrival> arrivals = {},
                             std::span<const TraceRange> iterations = {});

}  // namespace weir
