// Shares in proportion to weights: the turn goes to the client with the least virtual time, for one slice.
#include <algorithm>
#include <tuple>

#include "submit/sched/list.h"
#include "submit/sched/ordered.h"

namespace weir::scheduler {
namespace {

// Virtual time first. Of equals: not the one that has just had a turn, then the one that has waited longest; otherwise
// clients that come and go could starve one that stays.
using Key = std::tuple<double, bool, std::int64_t, std::size_t>;

// A turn always lasts a slice, because each hand-over costs the device some idle time; clients that become active
// meanwhile wait for its end. An idle client is ranked where it would begin: no lower than the active ones. Meanwhile
// the client whose turn it is may have used so much alone that a newcomer should pass it: that happens at the next
// decision.
Ranking rank_weighted_fair(const Situation& situation) {
  Ranking ranking{.turn = situation.turn};
  Turn& turn = ranking.turn;
  const std::span<const Client> clients = situation.clients;
  double least = std::numeric_limits<double>::infinity();
  int active = 0;
  for (const Client& client : clients) {
    if (!client.is_active) continue;
    least = std::min(least, client.virtual_ns);
    ++active;
  }
  std::array<Key, kMaxClients> keys{};
  for (std::size_t seat = 0; seat < clients.size(); ++seat) {
    const Client& client = clients[seat];
    const bool had_turn = static_cast<int>(seat) == turn.seat;
    const double begin = active > 0 ? std::max(client.virtual_ns, least) : client.virtual_ns;
    keys[seat] = client.is_active ? Key{client.virtual_ns, had_turn, client.arrived_ns, seat}
                                  : Key{begin, had_turn, situation.now_ns, seat};
  }

  const auto holder = static_cast<std::size_t>(turn.seat);  // meaningless if that is -1
  const bool holds = turn.seat >= 0 && holder < clients.size() && clients[holder].is_active;
  bool has_holder = holds && !turn.is_over(situation.now_ns);
  // A single client needs no turn: nobody has to ask when it is over, and a newcomer need not wait for its end.
  if (!has_holder && active > (holds ? 1 : 0)) {
    std::size_t chosen = clients.size();
    for (std::size_t seat = 0; seat < clients.size(); ++seat) {
      if (clients[seat].is_active && (chosen == clients.size() || keys[seat] < keys[chosen])) chosen = seat;
    }
    turn = {static_cast<int>(chosen), situation.now_ns + situation.settings.slice_ns};
    has_holder = true;
  }
  if (has_holder) {
    std::get<0>(keys[static_cast<std::size_t>(turn.seat)]) = -1;  // before all others: virtual times begin at 0
    ranking.asks_again_ns = turn.until_ns;
  }
  ranking.ranks = ranks_by(std::span<const Key>(keys.data(), clients.size()));
  return ranking;
}

}  // namespace

Policy policy_list::weighted_fair() {
  return {.name = "weighted_fair",
          .summary = "shares in proportion to weights, in turns of a slice",
          .rank = rank_weighted_fair,
          .follows_arrivals = true};
}

}  // namespace weir::scheduler
