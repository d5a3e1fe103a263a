// Decides for all clients of one device: keeps the state that policies need and asks the policy when something happens.
// A state machine without threads, clocks or processes: the daemon drives it with sockets, the submitter of
// `--schedule` with streams, the tests with all orders of events.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "submit/sched/policy.h"

namespace weir::scheduler {

class Conductor {
 public:
  Conductor(const Policy& policy, const Settings& settings);

  // Takes the lowest free seat; -1 if all are taken. Terms out of range are clamped.
  int join(const Terms& terms, std::int64_t now_ns);
  void leave(int seat, std::int64_t now_ns);
  // Sets which clients are active from now on, one bit per seat; bits of empty seats are ignored. `arrived_ns`: when
  // those that were not active before became so, by seat; null: now. A later time for one that was active before means
  // that it was idle in between and has a new request. Impossible arrival times are corrected.
  void set_active(std::uint64_t mask, std::int64_t now_ns, const std::int64_t* arrived_ns = nullptr);
  // Those who run beside the ones that come first instead of waiting: they do not age.
  void set_beside(std::uint64_t mask) { beside_ = mask; }
  // Time has passed: turns end, clients age. Here and above, a time before the last one counts as the last one.
  void advance(std::int64_t now_ns);

  // The clients whose activity keeps this one waiting: one bit per seat, active or not. Acyclic: of two clients at most
  // one yields to the other, and never to itself.
  std::uint64_t yields_to(int seat) const { return yields_to_[static_cast<std::size_t>(seat)]; }
  // Active clients that wait for nobody. Never empty while a client is active.
  std::uint64_t running() const;
  std::uint64_t active() const { return active_; }
  std::uint64_t seated() const { return seated_; }
  int clients() const { return std::popcount(seated_); }
  const Client& client(int seat) const { return clients_[static_cast<std::size_t>(seat)]; }
  // The latest time for the next advance(); kNever if nothing changes by itself.
  std::int64_t next_change_ns() const { return next_change_ns_; }
  const Policy& policy() const { return *policy_; }
  const Settings& settings() const { return settings_; }
  // Whose turn it is. If the turn is over or its client is idle, it is nobody's. Meaningless for policies without
  // turns.
  const Turn& turn() const { return turn_; }
  // The seat that comes first because it has waited too long; -1: none.
  int aged() const { return aged_; }

 private:
  std::int64_t charge(std::int64_t now_ns);
  void begin_request(int seat, std::int64_t arrived_ns);
  void rank(std::int64_t now_ns);

  const Policy* policy_;
  Settings settings_;
  std::array<Client, kMaxClients> clients_{};
  std::array<std::uint64_t, kMaxClients> yields_to_{};
  std::uint64_t seated_ = 0, active_ = 0, beside_ = 0;
  std::int64_t charged_ns_ = 0;  // up to when the device's time was charged: the time of the last event
  double min_virtual_ns_ = 0;    // the least of all clients that are, or last were, active: newcomers begin there
  Turn turn_;
  int aged_ = -1;
  std::int64_t next_change_ns_ = kNever;
};

}  // namespace weir::scheduler
