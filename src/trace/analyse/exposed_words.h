// Causes of exposed communication: their names, what they mean, and what to do about them. Knows no timeline.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir {

enum class ExposedCause : std::uint8_t {
  dependency,        // what comes next waited for this collective, which could not have started earlier
  shallow_prefetch,  // the same, but the collective had been held back by a command that still used its buffer
  shared_queue,      // the next command was ready and stood behind another stream's in its hardware queue
  launch_bound,      // the host had not submitted the next command yet, or had submitted the collective late
  no_room,           // the next command was ready, alone in its queue, and did not start: no free compute units
  rank_skew,         // the collective waited for the last rank
  step_end,          // nothing follows in this iteration
  unknown            // the source does not tell
};
inline constexpr std::size_t kExposedCauses = 8;

const char* to_string(ExposedCause cause) noexcept;
// What the cause means, and what to change, in one line each.
const char* meaning_of(ExposedCause cause) noexcept;
const char* advice_of(ExposedCause cause) noexcept;

}  // namespace weir
