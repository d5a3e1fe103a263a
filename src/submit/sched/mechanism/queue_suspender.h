// Suspends the queues of clients that have to wait, through the driver's debugger interface, and resumes them. The
// driver takes its time and wants the same thread for all calls, so this has a thread of its own. Knows no policy, and
// only the limits of the board.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "amd/kfd/debug_trap.h"
#include "submit/sched/board.h"
#include "submit/sched/mechanism.h"

namespace weir::scheduler {

class QueueSuspender final : public Enforcer {
 public:
  // How it waits. Tests use other values.
  struct Limits {
    std::int64_t attend_ns = 5'000'000;       // a signal to an attached client waits for this long at most
    std::int64_t release_ns = 1'000'000'000;  // a client that need not wait for this long is no longer attached
    std::int64_t retry_ns = 1'000'000'000;    // from a refusal to the next attempt
    std::int64_t silent_ns = kSilentNs;       // a hold() that is not renewed for this long is forgotten
  };

  // A client runs for a slice at least between two suspensions.
  QueueSuspender(std::unique_ptr<kfd::DebugTrap> trap, const Settings& settings);
  QueueSuspender(std::unique_ptr<kfd::DebugTrap> trap, const Settings& settings, const Limits& limits);
  // Resumes and detaches all, and returns when that is done.
  ~QueueSuspender() override;
  QueueSuspender(const QueueSuspender&) = delete;
  QueueSuspender& operator=(const QueueSuspender&) = delete;

  void join(int seat, int pid) override;
  void leave(int seat) override;
  void hold(std::uint64_t waiting, std::int64_t now_ns) override;
  MechanismUse use(int seat) const override;

 private:
  // One seat: what the daemon's thread says of it, and what is known to it.
  struct Place {
    int pid = 0;
    std::uint64_t tenant = 0;  // 0: nobody; otherwise different for each client that had this seat
    MechanismUse use;
  };
  class Target;

  void serve();

  const std::unique_ptr<kfd::DebugTrap> trap_;
  const Settings settings_;
  const Limits limits_;
  mutable std::mutex mutex_;  // for all below
  std::condition_variable changed_;
  std::array<Place, kMaxClients> places_;
  std::uint64_t changes_ = 0;
  std::uint64_t waiting_ = 0;
  std::int64_t renewed_ns_ = 0;
  bool is_ending_ = false;
  std::thread thread_;  // the tracer of all clients; last, because it uses everything above
};

}  // namespace weir::scheduler
