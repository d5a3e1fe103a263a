// Commands that touch the same memory while nothing orders them, found in one pass over a log: for every piece of
// memory the last accesses of each stream are remembered. Ranks nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "lab/race/extents.h"
#include "lab/race/log.h"

namespace weir::race {

// What is known of a meeting, the weakest first.
enum class Meeting : std::uint8_t {
  host,          // with the host (host_meetings.h)
  rest,          // only if one of them reaches further than the next pointer
  near,          // a pointer leads into what the other one touches
  same_pointer,  // both got the same pointer
  exact,         // both ranges are known
};

struct MeetingPair {
  std::uint32_t first = 0, second = 0;  // calls
  std::uint64_t begin = 0, end = 0;
  Meeting meeting = Meeting::rest;
  bool is_write_known = false;
  bool is_write_likely = false;  // see Extent::is_likely_output
};

// Of the pairs of a command with one stream only the latest matter: an access that is ordered after another, and
// excludes at least as much, stands for both. Of very many pairs the
// nearest are found; returns how many commands and accesses that concerns.
std::uint64_t find_meetings(const Log& log, std::span<const Extent> extents,
                            const std::function<void(const MeetingPair&)>& found);

}  // namespace weir::race
