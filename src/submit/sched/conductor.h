// Decides for all clients of one device: keeps what policies need to know and asks one when something happens. A state
// machine without threads, clocks or processes: the daemon drives it with sockets, the submitter of `--schedule` with
// streams, the tests with every order of events there is.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "submit/sched/policy.h"

namespace weir::scheduler {

class Conductor {
 public:
  Conductor(const Policy& policy, const Settings& settings);

  // Takes a seat, the lowest that is free; -1 where all are taken. Terms out of range are taken as the nearest in it.
  int join(const Terms& terms, std::int64_t now_ns);
  void leave(int seat, std::int64_t now_ns);
  // Which clients are active from now on, one bit per seat; bits of empty seats are ignored. `arrived_ns`: when those
  // that were not active before became so, by seat; null: now. A later time for one that was active before says that
  // it was idle in between: its request is a new one. Times of arrival are not believed beyond what is possible.
  void set_active(std::uint64_t mask, std::int64_t now_ns, const std::int64_t* arrived_ns = nullptr);
  // Time has passed: turns end, clients age. Here and above: a time before the last one counts as the last one.
  void advance(std::int64_t now_ns);

  // Whose activity keeps that client waiting: one bit per seat, active or not. Acyclic: of two clients at most one
  // yields to the other, and never to itself.
  std::uint64_t yields_to(int seat) const { return yields_to_[static_cast<std::size_t>(seat)]; }
  // Active clients that wait for nobody. Never empty while a client is active.
  std::uint64_t running() const;
  std::uint64_t active() const { return active_; }
  std::uint64_t seated() const { return seated_; }
  int clients() const { return std::popcount(seated_); }
  const Client& client(int seat) const { return clients_[static_cast<std::size_t>(seat)]; }
  // When advance() has to be called at the latest; kNever where nothing changes by itself.
  std::int64_t next_change_ns() const { return next_change_ns_; }
  const Policy& policy() const { return *policy_; }
  const Settings& settings() const { return settings_; }
  // Whose turn it is; over, or of a client that is idle: nobody's. Means nothing where the policy knows no turns.
  const Turn& turn() const { return turn_; }
  // The seat that comes first because it was kept waiting for too long; -1: none.
  int aged() const { return aged_; }

 private:
  std::int64_t charge(std::int64_t now_ns);
  void begin_request(int seat, std::int64_t arrived_ns);
  void rank(std::int64_t now_ns);

  const Policy* policy_;
  Settings settings_;
  std::array<Client, kMostClients> clients_{};
  std::array<std::uint64_t, kMostClients> yields_to_{};
  std::uint64_t seated_ = 0, active_ = 0;
  std::int64_t charged_ns_ = 0;  // up to when the device's time was given to clients: the time of the last event
  double least_virtual_ns_ = 0;  // the least of all that are active, or last were: newcomers begin there
  Turn turn_;
  int aged_ = -1;
  std::int64_t next_change_ns_ = kNever;
};

}  // namespace weir::scheduler
