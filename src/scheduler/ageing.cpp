#include "scheduler/ageing.h"

#include <algorithm>

namespace weir::scheduler {
namespace {

bool is_active(const Situation& situation, int seat) {
  return seat >= 0 && static_cast<std::size_t>(seat) < situation.clients.size() &&
         situation.clients[static_cast<std::size_t>(seat)].is_active;
}

}  // namespace

Ranking ranks_with_ageing(const Policy& policy, const Situation& situation) {
  Ranking ranking = policy.rank(situation);
  const std::int64_t ageing_ns = situation.settings.ageing_ns, now_ns = situation.now_ns;
  if (ageing_ns <= 0) return ranking;

  // One that has its slice keeps it to the end, or a client that is older by a moment could take it away again.
  if (is_active(situation, situation.aged.seat) && !situation.aged.is_over(now_ns)) ranking.aged = situation.aged;

  std::uint8_t first = std::numeric_limits<std::uint8_t>::max();
  for (std::size_t seat = 0; seat < situation.clients.size(); ++seat) {
    if (situation.clients[seat].is_active) first = std::min(first, ranking.ranks[seat]);
  }
  if (ranking.aged.seat < 0) {
    std::int64_t oldest_ns = kNever;
    for (std::size_t seat = 0; seat < situation.clients.size(); ++seat) {
      const Client& client = situation.clients[seat];
      if (!client.is_active || ranking.ranks[seat] == first || client.first_ns >= oldest_ns) continue;
      oldest_ns = client.first_ns;
      ranking.aged.seat = static_cast<int>(seat);
    }
    if (ranking.aged.seat < 0) return ranking;  // nobody waits
    if (now_ns - oldest_ns < ageing_ns) {
      ranking.aged = {};
      ranking.asks_again_ns = std::min(ranking.asks_again_ns, oldest_ns + ageing_ns);
      return ranking;
    }
    ranking.aged.until_ns = now_ns + situation.settings.slice_ns;
  }
  for (std::uint8_t& rank : ranking.ranks) ++rank;
  ranking.ranks[static_cast<std::size_t>(ranking.aged.seat)] = 0;
  ranking.asks_again_ns = std::min(ranking.asks_again_ns, ranking.aged.until_ns);
  return ranking;
}

}  // namespace weir::scheduler
