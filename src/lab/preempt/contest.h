// One observation: a victim that keeps the device busy, an intruder that comes when it is due, and rules of who gives
// way to whom. What mechanisms are made of.
#pragma once

#include <cstdint>

#include "lab/preempt/experiment.h"

namespace weir::preempt {

struct Rules {
  int intruder_priority = 0;    // the victim has 0
  bool waits_for_end = false;   // the victim launches nothing from when the intruder is due until it has ended
  bool obeys = false;           // ... and what it has on the device ends at the next block, to go on afterwards
  std::uint32_t in_flight = 0;  // launches of the victim on the device; 0: as many as it likes to queue ahead
};

Observation hold_contest(const Experiment& experiment, const Victim* victim, const Rules& rules);

}  // namespace weir::preempt
