// Which ends of collectives of two processes, each on a clock of its own, were the same moment. A trace may lack
// collectives at either end, so all shifts of one sequence against the other are weighed. Moves no times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "measure/timeline.h"
#include "trace/clock_curve.h"
#include "trace/collective_match.h"

namespace weir {

struct ClockPairs {
  std::vector<ClockPair> ends;
  bool has_common = false;  // both have collectives of one group and kind, so shifts were weighed
  // Where other shifts explain the collectives as well as the chosen one: how far away the nearest of them is. The
  // chosen one is then only the most plausible: clocks that agree, else sequences that begin together.
  std::optional<double> rival_ns;
};

class ClockPairing {
 public:
  explicit ClockPairing(const Timeline& timeline);

  bool has_any(std::uint16_t process) const { return !by_process_[process].empty(); }

  // The ends of all collectives that two processes share. A shift is excluded by sequence numbers, sizes or names that
  // differ, by distances of ends that are less steady than at the best shift, and by collectives of other groups and
  // kinds that would have no partner. At least half of the shorter of the two longest sequences is taken to be common.
  ClockPairs common_ends(std::uint16_t ours, std::uint16_t theirs) const;

 private:
  struct Place {
    std::uint32_t sequence = 0, device = 0;
  };

  const Timeline& timeline_;
  std::vector<CollectiveSequence> sequences_;
  std::vector<std::vector<Place>> by_process_;  // each process is represented by its first device
};

}  // namespace weir
