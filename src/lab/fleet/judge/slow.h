// Which places, nodes and devices are slow: places first, then nodes, then devices, each without what the larger one
// explains. Knows numbers; causes and sentences are others'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lab/fleet/judge/table.h"

namespace weir::fleet {

struct SlowUnit {
  enum class Level : std::uint8_t { place, node, device };
  Level level = Level::device;
  std::string place;              // "switch leaf3"; of a place only
  std::vector<std::size_t> rows;  // the devices that it has: one, those of a node, or those of a place
  std::size_t sharing = 0;        // of `rows`: have the effect
  Concern concern = Concern::speed;
  std::size_t kind = 0;  // the figure that shows it most clearly
  double value = 0, typical = 0, effect = 0;
  double p = 1;           // of all figures of the concern, corrected for the fleet
  std::size_t peers = 0;  // other devices in its group that have the figure; of a place or a node other such units
  std::vector<std::pair<std::size_t, double>> also;  // other figures of the concern that show it, and their effects
};

// Fills the figures of FleetReport::groups as well. Devices that are not judged are peers only.
std::vector<SlowUnit> slow_units(const JudgeTable& table, FleetReport& report);

}  // namespace weir::fleet
