// Highest priority first; clients of one priority share the device.
#include "submit/sched/list.h"

namespace weir::scheduler {
namespace {

// Depends only on terms: right at every instant, whoever becomes active, without a new decision.
Ranking rank_priority(const Situation& situation) {
  Ranking ranking;
  for (std::size_t seat = 0; seat < situation.clients.size(); ++seat) {
    ranking.ranks[seat] = static_cast<std::uint8_t>(kHighestPriority - situation.clients[seat].terms.priority);
  }
  return ranking;
}

}  // namespace

Policy policy_list::priority() {
  return {.name = "priority",
          .summary = "the highest priority first; clients of one priority share the device",
          .rank = rank_priority};
}

}  // namespace weir::scheduler
