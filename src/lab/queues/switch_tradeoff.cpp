#include "lab/queues/switch_tradeoff.h"

#include <algorithm>
#include <tuple>

namespace weir {

// The lower envelope of straight lines in the duration, from 0 on.
std::vector<BestRange> best_ranges(std::span<const QueueCosts> costs) {
  std::vector<BestRange> ranges;
  if (costs.empty()) return ranges;
  const QueueCosts* best = &*std::min_element(costs.begin(), costs.end(), [](const QueueCosts& a, const QueueCosts& b) {
    return std::tie(a.hop_ns, a.lost_share, a.queues) < std::tie(b.hop_ns, b.lost_share, b.queues);
  });
  double from_ns = 0;
  for (;;) {
    const QueueCosts* next = nullptr;
    double next_ns = 0;
    for (const QueueCosts& other : costs) {
      if (other.lost_share >= best->lost_share) continue;
      const double crossing_ns = (other.hop_ns - best->hop_ns) / (best->lost_share - other.lost_share);
      // Of several that cross here, the one that loses least wins beyond.
      if (next == nullptr || crossing_ns < next_ns || (crossing_ns == next_ns && other.lost_share < next->lost_share)) {
        next = &other;
        next_ns = crossing_ns;
      }
    }
    if (next == nullptr) break;
    if (next_ns > from_ns) ranges.push_back({best->queues, from_ns, next_ns});
    from_ns = std::max(from_ns, next_ns);
    best = next;
  }
  ranges.push_back({best->queues, from_ns, std::nullopt});
  return ranges;
}

}  // namespace weir
