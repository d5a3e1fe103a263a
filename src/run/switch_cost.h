// Measures the cost of a hop to another stream: one chain of dependent kernels, on one stream and over many.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "device/device.h"

namespace weir {

struct SwitchCost {
  std::optional<double> ns_per_hop;  // (alternating - one stream) / hops, while all streams have commands
  std::size_t hops = 0;              // per repetition
  std::size_t repetitions = 0;
  int streams = 0;
  std::string reason;  // why there is no result
};

// The chain is queued behind a held kernel, so that nothing waits for the host. Takes some tens of milliseconds.
SwitchCost measure_switch_cost(Device& device, int streams);

}  // namespace weir
