// What kinds of work the device's time went into. Reads the timeline of one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/timeline.h"
#include "trace/work_class.h"

namespace weir {

struct WorkUse {
  WorkClass work = WorkClass::unrecognised;
  std::size_t commands = 0;
  std::uint64_t total_ns = 0;  // sum of durations
  std::uint64_t busy_ns = 0;   // while n commands run at once each counts 1/n: the sum is the device's busy time
  double share = 0;            // of the busy time
};

// Most busy first. `names`: of the whole timeline, which a slice of it refers to.
std::vector<WorkUse> work_uses(const Timeline& timeline, const std::vector<std::string>& names);

}  // namespace weir
