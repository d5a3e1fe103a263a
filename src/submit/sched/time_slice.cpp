// Clients take turns; each turn is a slice times the client's weight.
#include <algorithm>

#include "submit/sched/list.h"

namespace weir::scheduler {
namespace {

// The next active seat after `seat`, around the table; `seat` itself comes last. -1: no client is active.
int next_active(std::span<const Client> clients, int seat) {
  for (int step = 1; step <= kMaxClients; ++step) {
    const auto candidate = static_cast<std::size_t>((seat + step + kMaxClients) % kMaxClients);
    if (candidate < clients.size() && clients[candidate].is_active) return static_cast<int>(candidate);
  }
  return -1;
}

// Ranks go around the table from the seat whose turn it is, idle or not: when that client ends its request, the next
// one continues at once, and a client that becomes active already has its place. A client that has had its turn and is
// alone continues, but is ranked after all others: a newcomer goes first without waiting for a decision, which begins
// its own turn.
Ranking rank_time_slice(const Situation& situation) {
  Ranking ranking{.turn = situation.turn};
  Turn& turn = ranking.turn;
  const auto is_active = [&](int seat) {
    return seat >= 0 && static_cast<std::size_t>(seat) < situation.clients.size() &&
           situation.clients[static_cast<std::size_t>(seat)].is_active;
  };
  bool has_holder = is_active(turn.seat) && !turn.is_over(situation.now_ns);
  if (!has_holder) {
    const int next = next_active(situation.clients, turn.seat);
    if (next >= 0 && next != turn.seat) {
      const double weight = situation.clients[static_cast<std::size_t>(next)].terms.weight;
      const auto slice_ns = static_cast<std::int64_t>(static_cast<double>(situation.settings.slice_ns) * weight);
      turn = {next, situation.now_ns + std::max<std::int64_t>(slice_ns, 1)};
      has_holder = true;
    }
  }
  const int begin = has_holder ? turn.seat : turn.seat + 1;
  for (int seat = 0; seat < kMaxClients; ++seat) {
    ranking.ranks[static_cast<std::size_t>(seat)] =
        static_cast<std::uint8_t>((seat - begin + 2 * kMaxClients) % kMaxClients);
  }
  if (has_holder) ranking.asks_again_ns = turn.until_ns;
  return ranking;
}

}  // namespace

Policy policy_list::time_slice() {
  return {.name = "time_slice",
          .summary = "turns, one client after the other, of a slice times its weight",
          .rank = rank_time_slice,
          .follows_arrivals = true};
}

}  // namespace weir::scheduler
