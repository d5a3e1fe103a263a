// Where more queues stop paying: hops get dearer, false serialisation gets less. Knows two numbers per queue count.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace weir {

// What a command costs with this many queues: a hop, and a share of a kernel's duration that it waits in vain.
struct QueueCosts {
  int queues = 0;
  double hop_ns = 0;
  double lost_share = 0;
  double cost_ns(double kernel_ns) const { return hop_ns + lost_share * kernel_ns; }
};

// Kernels of these durations are best off with `queues`.
struct BestRange {
  int queues = 0;
  double from_ns = 0;
  std::optional<double> to_ns;  // nothing: all that are longer
};

// From the shortest kernels to the longest, without gaps. Empty for no costs; fewer queues win where costs are equal.
std::vector<BestRange> best_ranges(std::span<const QueueCosts> costs);

}  // namespace weir
