// First come, first served: requests in order of arrival, each to its end.
#include "submit/sched/list.h"
#include "submit/sched/ordered.h"

namespace weir::scheduler {
namespace {

// An idle client would arrive later than all active ones, so it comes last, which is right for the first one that
// arrives. Several that arrive before the next decision share the device until then. A client that ended its request
// and began the next one keeps its old place until then.
Ranking rank_fifo(const Situation& situation) {
  std::array<std::int64_t, kMaxClients> arrivals{};
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
          .rank = rank_fifo,
          .follows_arrivals = true};
}

}  // namespace weir::scheduler
