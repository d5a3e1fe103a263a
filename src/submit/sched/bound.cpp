#include "submit/sched/bound.h"

namespace weir::scheduler {

bool may_yield(const Policy& policy, const Settings& settings, const Terms& terms, const Terms& other) {
  constexpr std::int64_t kNow = 4 * kLongestDeadlineNs;
  constexpr std::int64_t kEarlier = kNow - 2 * kLongestDeadlineNs;  // so early that no deadline makes up for it
  const Turn turns[] = {{-1, 0}, {0, kNow + 1}, {0, kNow - 1}, {1, kNow + 1}, {1, kNow - 1}};
  for (const bool is_first : {true, false}) {
    for (const bool has_used : {true, false}) {
      for (const Turn& turn : turns) {
        Client clients[2];
        clients[0] = {.terms = terms, .is_active = true, .arrived_ns = is_first ? kEarlier : kNow};
        clients[1] = {.terms = other, .is_active = true, .arrived_ns = is_first ? kNow : kEarlier};
        clients[0].used_ns = clients[0].virtual_ns = has_used ? 1e9 : 0;
        clients[1].used_ns = clients[1].virtual_ns = has_used ? 0 : 1e9;
        const Ranking ranking = policy.rank({.clients = clients, .now_ns = kNow, .turn = turn, .settings = settings});
        if (ranking.ranks[1] < ranking.ranks[0]) return true;
      }
    }
  }
  return false;
}

}  // namespace weir::scheduler
