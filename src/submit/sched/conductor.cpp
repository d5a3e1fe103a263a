#include "submit/sched/conductor.h"

#include <algorithm>

namespace weir::scheduler {
namespace {

constexpr std::uint64_t bit(int seat) { return std::uint64_t{1} << seat; }

// Calls `act` with each seat of a mask.
template <class Act>
void for_each_seat(std::uint64_t mask, Act act) {
  for (; mask != 0; mask &= mask - 1) act(std::countr_zero(mask));
}

// Prevents starvation, whatever the policy.
// Uses the policy's ranks, except that the waiting client with the earliest first_ns comes first once ageing_ns have
// passed since then, until it has been first for a slice in total. So with n clients every active one is among the
// first for a slice in total within ageing_ns + n slices, and waits at most ageing_ns + n - 1 slices at a stretch: only
// the others' slices can come before its own.
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
  // It stays the oldest until it has been first for a slice, and counts from then: no extra state is needed.
  const std::int64_t left_ns = std::max<std::int64_t>(situation.settings.slice_ns - oldest->was_first_ns, 1);
  ranking.aged = static_cast<int>(oldest - situation.clients.data());
  ranking.asks_again_ns = std::min(ranking.asks_again_ns, now_ns + left_ns);
  for (std::uint8_t& rank : ranking.ranks) ++rank;
  ranking.ranks[static_cast<std::size_t>(ranking.aged)] = 0;
  return ranking;
}

}  // namespace

Conductor::Conductor(const Policy& policy, const Settings& settings) : policy_(&policy), settings_(settings) {
  // With a turn of length 0, the policy would be called for ever.
  settings_.slice_ns = std::clamp<std::int64_t>(settings_.slice_ns, 1, kLongestSliceNs);
  settings_.ageing_ns = std::clamp<std::int64_t>(settings_.ageing_ns, 0, kLongestAgeingNs);
}

int Conductor::join(const Terms& terms, std::int64_t now_ns) {
  if (seated_ == ~std::uint64_t{0}) return -1;
  now_ns = charge(now_ns);
  const int seat = std::countr_one(seated_);
  Client& client = clients_[static_cast<std::size_t>(seat)];
  client = {};
  client.terms.priority = std::clamp(terms.priority, kLowestPriority, kHighestPriority);
  // NaN is in no range; it is ignored.
  if (terms.weight == terms.weight) client.terms.weight = std::clamp(terms.weight, kMinWeight, kMaxWeight);
  client.terms.deadline_ns = std::clamp<std::int64_t>(terms.deadline_ns, 0, kLongestDeadlineNs);
  client.terms.p99_ns = std::clamp<std::int64_t>(terms.p99_ns, 0, kLongestP99Ns);
  client.terms.is_isolated = terms.is_isolated;
  seated_ |= bit(seat);
  rank(now_ns);
  return seat;
}

void Conductor::leave(int seat, std::int64_t now_ns) {
  if (seat < 0 || seat >= kMaxClients || (seated_ & bit(seat)) == 0) return;
  now_ns = charge(now_ns);
  seated_ &= ~bit(seat);
  beside_ &= ~bit(seat);
  active_ &= ~bit(seat);
  clients_[static_cast<std::size_t>(seat)] = {};
  // The turn ends but stays with this seat: the next client around the table must not depend on who leaves, and the
  // next client on this seat must not inherit it.
  if (turn_.seat == seat) turn_.until_ns = now_ns;
  rank(now_ns);
}

void Conductor::set_active(std::uint64_t mask, std::int64_t now_ns, const std::int64_t* arrived_ns) {
  const std::int64_t seen_idle_ns = charged_ns_;
  now_ns = charge(now_ns);
  mask &= seated_;
  const std::uint64_t before = active_;
  active_ = mask;
  for_each_seat(before & ~mask, [&](int seat) { clients_[static_cast<std::size_t>(seat)].is_active = false; });
  for_each_seat(mask, [&](int seat) {
    const Client& client = clients_[static_cast<std::size_t>(seat)];
    const std::int64_t claimed_ns = arrived_ns == nullptr ? now_ns : std::min(arrived_ns[seat], now_ns);
    if (!client.is_active) {
      // It was idle at the last event; an earlier arrival would claim a longer wait.
      begin_request(seat, std::max(claimed_ns, std::min(seen_idle_ns, now_ns)));
    } else if (arrived_ns != nullptr && claimed_ns > client.arrived_ns) {
      begin_request(seat, claimed_ns);
    }
  });
  rank(now_ns);
}

void Conductor::advance(std::int64_t now_ns) { rank(charge(now_ns)); }

std::uint64_t Conductor::running() const {
  std::uint64_t found = 0;
  for_each_seat(active_, [&](int seat) {
    if ((yields_to_[static_cast<std::size_t>(seat)] & active_) == 0) found |= bit(seat);
  });
  return found;
}

// Charges the time since the last event to the running clients, in equal parts. Returns the time of this event.
std::int64_t Conductor::charge(std::int64_t now_ns) {
  if (now_ns <= charged_ns_) return charged_ns_;
  const std::int64_t passed_ns = now_ns - charged_ns_;
  charged_ns_ = now_ns;
  if (active_ == 0) return now_ns;
  const std::uint64_t first = running();
  const double part_ns = static_cast<double>(passed_ns) / std::popcount(first);
  for_each_seat(first, [&](int seat) {
    Client& client = clients_[static_cast<std::size_t>(seat)];
    client.used_ns += part_ns;
    // A slice for age is not charged: otherwise the client would pay for ever for a share that ageing_ns keeps above
    // the one that its weight gives it.
    if (seat != aged_) client.virtual_ns += part_ns / client.terms.weight;
    client.was_first_ns += passed_ns;
    // Shorter periods in which it happened to be first do not count: they may be too short to launch anything.
    if (client.was_first_ns >= settings_.slice_ns) client.first_ns = now_ns;
  });
  for_each_seat(active_ & beside_, [&](int seat) { clients_[static_cast<std::size_t>(seat)].first_ns = now_ns; });
  double least = std::numeric_limits<double>::infinity();
  for_each_seat(active_,
                [&](int seat) { least = std::min(least, clients_[static_cast<std::size_t>(seat)].virtual_ns); });
  min_virtual_ns_ = least;
  return now_ns;
}

void Conductor::begin_request(int seat, std::int64_t arrived_ns) {
  Client& client = clients_[static_cast<std::size_t>(seat)];
  client.is_active = true;
  client.arrived_ns = client.first_ns = arrived_ns;
  client.was_first_ns = 0;
  client.virtual_ns = std::max(client.virtual_ns, min_virtual_ns_);
}

void Conductor::rank(std::int64_t now_ns) {
  const auto used_seats = static_cast<std::size_t>(std::bit_width(seated_));
  const Ranking ranking = ranks_with_ageing(
      *policy_,
      {.clients = std::span(clients_).first(used_seats), .now_ns = now_ns, .turn = turn_, .settings = settings_});
  turn_ = ranking.turn;
  aged_ = ranking.aged;
  next_change_ns_ = active_ == 0 ? kNever : ranking.asks_again_ns;

  std::array<std::uint64_t, 256> of_rank{};  // clients with each rank
  std::size_t last = 0;
  for_each_seat(seated_, [&](int seat) {
    const std::size_t rank = ranking.ranks[static_cast<std::size_t>(seat)];
    of_rank[rank] |= bit(seat);
    last = std::max(last, rank);
  });
  yields_to_ = {};
  std::uint64_t before = 0;
  for (std::size_t rank = 0; rank <= last; ++rank) {
    for_each_seat(of_rank[rank], [&](int seat) { yields_to_[static_cast<std::size_t>(seat)] = before; });
    before |= of_rank[rank];
  }

  // A client that has had its slice and now has to wait counts from now.
  for_each_seat(active_ & ~running(), [&](int seat) {
    Client& client = clients_[static_cast<std::size_t>(seat)];
    if (client.was_first_ns >= settings_.slice_ns) client.was_first_ns = 0;
  });
}

}  // namespace weir::scheduler
