// One device's part of a timeline, as a separate timeline. Analyses look at one device at a time.
#pragma once

#include "measure/timeline.h"
#include "trace/intervals.h"

namespace weir {

// Spans of `device` with their dependencies and collectives, calls and ranges of its process; lanes keep their numbers,
// so labels stay valid. Names are not copied: look them up in the whole. Returns everything where the timeline has no
// lanes.
Timeline slice(const Timeline& whole, std::uint16_t device);

// What begins in this interval: commands with their dependencies and collectives, the calls from the first of their
// submissions on, and ranges that reach into it.
Timeline within(const Timeline& whole, const TimeInterval& interval);
// The same where the timeline is one of several, of which the first submission is known.
Timeline within(const Timeline& whole, const TimeInterval& interval, std::int64_t from_ns);
// The first submission of a command that begins in this interval, or the interval's begin if that is earlier: the host
// runs ahead of the device.
std::int64_t first_submission(const Timeline& whole, const TimeInterval& interval) noexcept;

// The commands of one iteration with the dependencies among them; without calls and ranges.
Timeline only_iteration(const Timeline& whole, std::uint32_t iteration);

}  // namespace weir
