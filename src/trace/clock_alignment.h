// How far apart the clocks of ranks are, derived from the collectives that they left together, and the correction that
// brings them onto one clock. Assumes that all ranks leave a collective at nearly the same moment, and states how
// nearly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"
#include "trace/clock_curve.h"

namespace weir {

struct RankClock {
  std::uint16_t process = 0;
  int rank = 0;
  std::size_t matched = 0;          // collectives shared with the reference
  std::optional<double> offset_ns;  // its clock minus the reference's, by median; empty where `reason` explains why
  // Nine of ten collectives are within this of the offset, after drift was taken out. Empty where the offset is not
  // known: then `offset_ns` is the most plausible of several, and `reason` says so.
  std::optional<double> error_ns;
  std::optional<double> drift_ppm;  // where the ends show it; apply_alignment() takes it out
  bool is_shifted = false;  // apply_alignment() moves it; false where the offset is within twice the worst error
  std::string reason;       // why there is no offset, or why it is not known
  ClockCurve curve;         // its clock minus the reference's over time; of use where offset_ns is set
};

struct ClockAlignment {
  std::uint16_t reference = 0;   // process
  std::vector<RankClock> ranks;  // by rank; the reference has offset 0
  bool is_aligned = false;       // every rank's offset is known, so times of different ranks may be compared
  double error_ns = 0;           // the worst rank's, or the largest offset that was not applied if that is larger
  std::string summary;           // for the user: what was done, or why nothing was possible
};

// Empty for fewer than two processes with commands. Processes on one clock (TraceProcess::clock) get one offset.
std::optional<ClockAlignment> align_clocks(const Timeline& timeline);

// Moves all times of the shifted ranks (commands, calls, ranges, memory) and sorts again. Adds a note, and raises the
// timeline's clock error to the alignment's.
void apply_alignment(Timeline& timeline, const ClockAlignment& alignment);

// Moves all times (commands, calls, ranges, memory) later by `ns`; a time that would leave the valid range becomes
// kNoTime.
void shift_clock(Timeline& timeline, std::int64_t ns) noexcept;

}  // namespace weir
