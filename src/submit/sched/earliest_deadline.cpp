// Earliest deadline first: the request with the next deadline goes next; work without one fills the gaps.
#include "submit/sched/list.h"
#include "submit/sched/ordered.h"

namespace weir::scheduler {
namespace {

// An idle client is ranked as if its request arrived now, so that an urgent one need not wait for a decision. When it
// does arrive, its deadline is that much later: until the next decision it may pass an active client whose deadline
// falls into that difference, or keep it waiting.
Ranking rank_earliest_deadline(const Situation& situation) {
  std::array<std::int64_t, kMaxClients> deadlines{};
  const std::size_t count = situation.clients.size();
  for (std::size_t seat = 0; seat < count; ++seat) {
    const Client& client = situation.clients[seat];
    const std::int64_t arrived_ns = client.is_active ? client.arrived_ns : situation.now_ns;
    deadlines[seat] = client.terms.deadline_ns > 0 ? arrived_ns + client.terms.deadline_ns : kNever;
  }
  return {.ranks = ranks_by(std::span<const std::int64_t>(deadlines.data(), count))};
}

}  // namespace

Policy policy_list::earliest_deadline() {
  return {.name = "earliest_deadline",
          .summary = "the request whose deadline comes next; clients without one come last",
          .rank = rank_earliest_deadline,
          .follows_arrivals = true};
}

}  // namespace weir::scheduler
