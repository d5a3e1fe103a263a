// First come, first served: requests in the order in which they arrived, each to its end.
#include "submit/sched/list.h"
#include "submit/sched/ordered.h"

namespace weir::scheduler {
namespace {

// Whoever is idle would arrive later than all that are active: it comes last, which is right for the first one that
// arrives. Several that arrive before this is asked again share the device meanwhile. One that ended its request and
// brought the next one keeps its old place until then.
Ranking rank(const Situation& situation) {
  std::array<std::int64_t, kMostClients> arrivals{};
  const std::size_t count = situation.clients.size();
  for (std::size_t seat = 0; seat < count; ++seat) {
    const Client& client = situation.clients[seat];
    arrivals[seat] = client.is_active ? client.arrived_ns : kNever;
  }
  return {.ranks = ranks_by(std::span<const std::int64_t>(arrivals.data(), count))};
}

}  // namespace

Policy policy_list::fifo() {
  return {.name = "fifo",
          .summary = "requests in the order in which they arrived, each to its end",
          .rank = rank,
          .follows_arrivals = true};
}

}  // namespace weir::scheduler
