// Where a program's start-up ends in a timeline: a capture of a whole program begins with loading and warming up, which
// says nothing about how it runs. Knows times and kinds of commands; no names.
#pragma once

#include <cstdint>
#include <optional>

#include "measure/timeline.h"

namespace weir {

// When the steady part begins. Empty where the timeline is steady from its beginning, or where that is not clear:
// start-up ends with a gap in which the host had not asked for work, at least 100 ms after the first command, several
// times as long as any gap after it; the device was mostly idle until then, and few of the kernels are before it. On
// all devices.
std::optional<std::int64_t> steady_from(const Timeline& timeline);

}  // namespace weir
