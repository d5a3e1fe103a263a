// One observation: a victim that keeps the device busy, an intruder whose requests come when they are due, and rules
// for who gives way. Mechanisms are built from it.
#pragma once

#include <cstdint>

#include "lab/preempt/experiment.h"

namespace weir::preempt {

struct Rules {
  int intruder_priority = 0;    // the victim has priority 0
  bool waits_for_end = false;   // the victim launches nothing from the intruder's arrival until its end
  bool is_stoppable = false;    // ... and its running launches end at the next block and are resumed afterwards
  std::uint32_t in_flight = 0;  // the victim's launches on the device; 0: as many as it queues ahead
};

Observation hold_contest(const Experiment& experiment, const Victim* victim, const Rules& rules);

}  // namespace weir::preempt
