// How far the clocks of ranks are apart, told by the collectives that they left together, and the shift that brings
// them onto one. Assumes that all ranks leave a collective at nearly the same moment; states how nearly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

struct RankClock {
  std::uint16_t process = 0;
  int rank = 0;
  std::size_t matched = 0;          // collectives it has in common with the reference
  std::optional<double> offset_ns;  // its clock minus the reference's; nothing where `reason` says why
  std::optional<double> error_ns;   // nine of ten collectives lie within this of the offset
  std::optional<double> drift_ppm;  // of a trace of a second or more, where it exceeds the error
  bool is_shifted = false;          // apply_alignment() moves it; not where the offset is within twice the worst error
  std::string reason;               // why there is no offset, or why it may be wrong
};

struct ClockAlignment {
  std::uint16_t reference = 0;   // process
  std::vector<RankClock> ranks;  // by rank; the reference has offset 0
  bool is_aligned = false;       // every rank has an offset, so times of ranks may be compared
  double error_ns = 0;           // the worst rank's, and the largest offset that was left
  std::string summary;           // for the reader: what was done, or why nothing could be
};

// Nothing for fewer than two processes with commands. Processes of one clock (TraceProcess::clock) get one offset.
std::optional<ClockAlignment> align_clocks(const Timeline& timeline);

// Moves all times of the ranks that are shifted (commands, calls, ranges), and sorts again. Adds a note, and the error
// to the timeline's.
void apply_alignment(Timeline& timeline, const ClockAlignment& alignment);

// Moves all times (commands, calls, ranges) later by `ns`; what would leave the range of times has none then.
void shift_clock(Timeline& timeline, std::int64_t ns) noexcept;

}  // namespace weir
