// Copies to and from host memory that the program may touch while they are under way. The host's own accesses are not
// in a log, so this says only where it did not wait, and such places are common in correct programs.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "lab/race/extents.h"
#include "lab/race/log.h"
#include "lab/race/meetings.h"

namespace weir::race {

// How the host waited for the copy, the most suspicious first.
enum class HostWait : std::uint8_t {
  none,     // not before a checkpoint, the next copy of the same direction into the same place, or the end
  later,    // at some time
  at_once,  // the thread's next call
};

struct HostMeeting {
  std::uint32_t copy = 0;  // call
  std::uint64_t begin = 0, end = 0;
  bool writes = false;  // the copy writes host memory
  HostWait wait = HostWait::none;
};

// Every asynchronous copy with host memory that the run allocated, once. And such copies with host functions of other
// streams that nothing orders with them: those may touch any memory of the host.
void find_host_meetings(const Log& log, std::span<const Extent> extents,
                        const std::function<void(const HostMeeting&)>& found,
                        const std::function<void(const MeetingPair&)>& found_function);

}  // namespace weir::race
