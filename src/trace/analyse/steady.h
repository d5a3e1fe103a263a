// Where a program's start-up ends in a timeline: a capture of a whole program begins with loading and warming up, which
// says nothing about how it runs. Knows times and kinds of commands; no names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// When the steady part begins. Empty where the timeline is steady from its beginning, or where that is not clear:
// start-up ends with a gap in which the host had not asked for work, at least 100 ms after the first command, several
// times as long as any gap after it; the device was mostly idle until then, and few of the kernels are before it. On
// all devices.
std::optional<std::int64_t> steady_from(const Timeline& timeline);

// The same in parts, where the devices are in several timelines on one clock. When the steady part of each device
// begins that runs enough kernels to say so; empty for one that has no start-up, or where that is not clear.
std::vector<std::optional<std::int64_t>> steady_starts(const Timeline& timeline);
// When the steady part of all these devices begins, if are_steady_from() agrees for each timeline.
std::optional<std::int64_t> common_steady_start(std::span<const std::optional<std::int64_t>> starts);
// Whether little of the work of each device is before `from_ns`: ranks that start far apart have no steady part in
// common.
bool are_steady_from(const Timeline& timeline, std::int64_t from_ns);

}  // namespace weir
