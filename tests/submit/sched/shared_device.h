// A device that several clients share, in virtual time: kernels are not preempted and run one after the other in the
// order in which they were launched; clients pass a gate that follows the conductor's masks, with so many kernels in
// flight. Knows no policy; tests look at every launch and every instant.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "submit/sched/conductor.h"

namespace weir::testing {

// What a client brings: requests of so many kernels each.
struct Demand {
  scheduler::Terms terms;
  std::int64_t min_idle_ns = 0, max_idle_ns = 0;  // between the end of a request and the next arrival
  std::int64_t period_ns = 0;                     // not 0: arrivals are that far apart instead
  int min_kernels = 1, max_kernels = 1;           // of a request
  std::int64_t min_kernel_ns = 1, max_kernel_ns = 1;
};

inline constexpr int kEndless = 1'000'000'000;  // kernels of a request that does not end within a test

struct RequestRecord {
  int client = 0;
  std::int64_t arrived_ns = 0, started_ns = -1, ended_ns = -1;
  std::int64_t found_ns = 0;  // kernels of others that were on the device when it arrived would take so long
};

class SharedDevice {
 public:
  struct Options {
    const scheduler::Policy* policy = nullptr;
    scheduler::Settings settings;
    int in_flight = 2;
    std::int64_t hears_within_ns = 0;  // the conductor hears of requests that late at most
    std::uint64_t seed = 1;
  };

  SharedDevice(const Options& options, std::vector<Demand> demands);

  // Before a kernel of that client goes to the device, and after everything that happens at one instant.
  std::function<void(int client)> on_launch;
  std::function<void()> on_instant;

  void run_until(std::int64_t end_ns);

  const scheduler::Conductor& conductor() const { return conductor_; }
  int clients() const { return static_cast<int>(clients_.size()); }
  const Demand& demand(int client) const { return clients_[static_cast<std::size_t>(client)].demand; }
  std::int64_t now_ns() const { return now_ns_; }
  // The truth; the conductor may not have heard of it yet. Seats are clients' numbers.
  std::uint64_t active() const { return active_; }
  bool is_active(int client) const { return (active_ >> client & 1) != 0; }
  std::int64_t arrived_ns(int client) const { return arrived_ns_[static_cast<std::size_t>(client)]; }
  std::int64_t ran_ns(int client) const { return clients_[static_cast<std::size_t>(client)].ran_ns; }
  const std::vector<RequestRecord>& requests() const { return requests_; }
  // A client has kernels to launch, but the device has nothing to do.
  bool wastes_time() const;

 private:
  struct ClientState {
    Demand demand;
    std::int64_t next_arrival_ns = 0;
    int to_launch = 0, in_flight = 0;
    std::size_t request = 0;
    std::int64_t ran_ns = 0;
  };
  struct Kernel {
    int client = 0;
    std::int64_t ns = 0;
  };

  std::int64_t below(std::int64_t least, std::int64_t most);
  void end_kernel();
  void arrive(int client);
  void update_conductor();
  void launch_what_may_go();
  void start_next();

  Options options_;
  std::mt19937_64 random_;
  scheduler::Conductor conductor_;
  std::vector<ClientState> clients_;
  std::vector<RequestRecord> requests_;
  std::deque<Kernel> queue_;  // the first one runs
  std::int64_t now_ns_ = 0, kernel_ends_ns_ = scheduler::kNever, hears_ns_ = scheduler::kNever;
  std::uint64_t active_ = 0;
  std::vector<std::int64_t> arrived_ns_;
};

}  // namespace weir::testing
