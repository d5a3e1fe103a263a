// What a timeline proves about hardware queues that it does not name: in one queue, commands start in the order in
// which they were submitted. Reads only times of submission and start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// Two streams. An opportunity is a command that was submitted while an earlier one of the other stream had not started;
// it is an inversion if it started before that one, which one queue cannot do. All by more than the clock's error.
struct PairOrder {
  std::uint16_t a = 0, b = 0;  // a < b
  std::size_t opportunities = 0;
  std::size_t inversions = 0;

  bool is_apart() const noexcept { return inversions > 0; }
};

struct QueueOrder {
  std::vector<PairOrder> pairs;  // all pairs of streams that have commands with times, by a, then by b
  std::size_t left_out = 0;      // commands without times, or on copy engines, which have queues of their own
  std::string reason;            // why there are no pairs

  // Null where either has no commands.
  const PairOrder* find(std::uint16_t a, std::uint16_t b) const noexcept;
};

// Costs a sort and one check per command and stream: commands of a stream start in order, so of all that a stream had
// submitted before, the last one starts last and decides. 100,000 commands on 64 streams: 6.4 million checks.
QueueOrder queue_order(const Timeline& timeline);

}  // namespace weir
