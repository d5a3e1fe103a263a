#include "submit/sched/ageing.h"

#include <algorithm>

namespace weir::scheduler {
Ranking ranks_with_ageing(const Policy& policy, const Situation& situation) {
  Ranking ranking = policy.rank(situation);
  const std::int64_t ageing_ns = situation.settings.ageing_ns, now_ns = situation.now_ns;
  if (ageing_ns <= 0) return ranking;

  std::uint8_t first = std::numeric_limits<std::uint8_t>::max();
  for (std::size_t seat = 0; seat < situation.clients.size(); ++seat) {
    if (situation.clients[seat].is_active) first = std::min(first, ranking.ranks[seat]);
  }
  const Client* oldest = nullptr;
  for (std::size_t seat = 0; seat < situation.clients.size(); ++seat) {
    const Client& client = situation.clients[seat];
    if (!client.is_active || ranking.ranks[seat] == first) continue;
    if (oldest == nullptr || client.first_ns < oldest->first_ns) oldest = &client;
  }
  if (oldest == nullptr) return ranking;  // nobody waits
  if (now_ns - oldest->first_ns < ageing_ns) {
    ranking.asks_again_ns = std::min(ranking.asks_again_ns, oldest->first_ns + ageing_ns);
    return ranking;
  }
  // It stays the oldest until it has been first for a slice, and counts from then: that needs no memory.
  const std::int64_t left_ns = std::max<std::int64_t>(situation.settings.slice_ns - oldest->was_first_ns, 1);
  ranking.aged = static_cast<int>(oldest - situation.clients.data());
  ranking.asks_again_ns = std::min(ranking.asks_again_ns, now_ns + left_ns);
  for (std::uint8_t& rank : ranking.ranks) ++rank;
  ranking.ranks[static_cast<std::size_t>(ranking.aged)] = 0;
  return ranking;
}

}  // namespace weir::scheduler
