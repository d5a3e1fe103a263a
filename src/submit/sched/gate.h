// A client's side of the board: what every command passes before it goes to the device. Costs one load while the client
// is alone. Never keeps anybody waiting for a daemon that is gone. Knows no socket and no device: who made it tells it
// when commands have ended.
#pragma once

#include <atomic>
#include <cstdint>

#include "submit/sched/board.h"

namespace weir::scheduler {

// How a gate waits. Tests and measurements choose others.
struct GateLimits {
  // One that sleeps comes through 6.2 us after it may, one that spins 3.1 us (bench_sched_gate, Neoverse-N1, November
  // 2026), and cores that have nothing else to do sleep deeper: short waits are worth a core.
  std::int64_t spin_ns = 20'000;
  std::int64_t sleep_ns = 10'000'000;   // whatever went wrong is looked at again then
  std::int64_t stuck_ns = 100'000'000;  // none of its own commands ended for so long: the bound is not kept any more
};

class Gate {
 public:
  // The board must stay mapped. `ring`: called where the daemon wants to hear that this client became active; any
  // thread.
  Gate(Board& board, int seat, void (*ring)(void*) = nullptr, void* ring_context = nullptr,
       const GateLimits& limits = {});
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Called by any thread when there is something to attend to again: the first command went to the device, or
  // settle() has to be called though nothing did. Set before the first enter().
  void set_attendant(void (*wake)(void*), void* context) noexcept;

  // Whether commands have to be counted from now on: somebody else shares the device. Two relaxed loads.
  bool is_shared() const noexcept {
    return seat_->in_flight.load(std::memory_order_relaxed) != 0 && is_in_force_.load(std::memory_order_relaxed);
  }

  // Before a command: marks the client active, then waits while one that comes first is active, or while too many of
  // its own commands are on the device. Any thread. Each enter() is followed by one leave().
  void enter() noexcept;
  // That many commands have ended, or were not launched after all. Any thread.
  void leave(std::uint32_t commands = 1) noexcept;
  // enter() without waiting, for who has other things to do; false: no leave() follows. That the client wants to is
  // known all the same: it stays active for as long as it lingers from its last attempt on.
  bool try_enter() noexcept;
  // Commands between the call of enter() and leave(): those that wait, and those on the device.
  std::uint32_t pending() const noexcept { return pending_.load(std::memory_order_seq_cst); }
  // Of these: went through, so may have ended.
  std::uint32_t on_device() const noexcept { return on_device_.load(std::memory_order_seq_cst); }

  // A client stays active for that long after its last command ended: requests are made of several launches with the
  // host's work between them. settle() ends such a request when its time is over; returns when it wants to be called
  // again, kNever where nothing is due. For the one thread that attends to the gate.
  void set_linger(std::int64_t ns) noexcept { linger_ns_.store(ns, std::memory_order_relaxed); }
  std::int64_t settle(std::int64_t now_ns) noexcept;

  // From now on nothing waits here any more, and who waits goes on: the daemon is gone.
  void open_for_good() noexcept;
  // The same in a forked child, where nobody waits: the seat and its bit are the parent's.
  void open_in_child() noexcept { is_in_force_.store(false, std::memory_order_seq_cst); }
  bool is_open_for_good() const noexcept { return !is_in_force_.load(std::memory_order_relaxed); }

  std::uint64_t launches() const noexcept { return seat_->launches.load(std::memory_order_relaxed); }
  std::uint64_t held() const noexcept { return seat_->held.load(std::memory_order_relaxed); }
  std::uint64_t held_ns() const noexcept { return seat_->held_ns.load(std::memory_order_relaxed); }

 private:
  enum class Hold : std::uint8_t { none, others, own };  // what a command waits for
  Hold holds(std::uint32_t on_device) const noexcept;
  Hold admit() noexcept;
  void admit_anyway() noexcept;
  void become_active() noexcept;
  [[gnu::noinline]] void wait_behind(Hold hold) noexcept;
  void sleep(Hold hold, std::int64_t most_ns) noexcept;
  void wake_own() noexcept;
  void wake_attendant() const noexcept {
    if (wake_ != nullptr) wake_(wake_context_);
  }

  const GateLimits limits_;
  Board* board_;
  Seat* seat_;
  std::uint64_t bit_;
  void (*ring_)(void*);
  void* ring_context_;
  void (*wake_)(void*) = nullptr;
  void* wake_context_ = nullptr;
  std::atomic<bool> is_in_force_{true};  // false: after open_for_good()
  std::atomic<std::uint32_t> pending_{0};
  std::atomic<std::uint32_t> on_device_{0};
  // As turn and waiting of the board, for threads that wait for this client's own commands.
  std::atomic<std::uint32_t> own_turn_{0};
  std::atomic<std::uint32_t> own_waiting_{0};
  std::atomic<std::int64_t> idle_since_ns_{0};
  std::atomic<std::int64_t> linger_ns_{100'000};
};

}  // namespace weir::scheduler
