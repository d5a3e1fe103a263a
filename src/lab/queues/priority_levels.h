// Which of the priorities that a device offers make a difference: a small kernel comes while a large one of the level
// below fills the device. Judges by the order in which blocks start, not by times.
#pragma once

#include <vector>

#include "device/device.h"

namespace weir {

struct PriorityLevels {
  struct Pair {
    int lower = 0, higher = 0;
    // Share of the large kernel's blocks that had started before the small one, medians: 1 is after all of them.
    double passed_equal = 0;   // both at `lower`
    double passed_higher = 0;  // the small one at `higher`
    Known<bool> differs;
  };
  int lowest = 0, highest = 0;  // as the device says
  Known<int> levels;            // that really exist
  std::vector<Pair> pairs;      // neighbours, ascending
  int blocks_at_once = 0;       // of the device, by experiment
  int victim_blocks = 0;
};

PriorityLevels measure_priority_levels(Device& device);

// What the two shares of a pair say; nothing where even an equal does not wait.
Known<bool> priorities_differ(double passed_equal, double passed_higher);
// One more than there are differing neighbours; nothing where one of them is not known.
Known<int> count_levels(const std::vector<PriorityLevels::Pair>& pairs);

}  // namespace weir
