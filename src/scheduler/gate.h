// A client's side of the board: what every command passes before it goes to the device. Costs one load while the client
// is alone. Never keeps anybody waiting for a daemon that is gone. Knows no socket and no device: who made it tells it
// when commands have ended.
#pragma once

#include <atomic>
#include <cstdint>

#include "scheduler/board.h"

namespace weir::scheduler {

class Gate {
 public:
  // The board must stay mapped. `ring`: called where the daemon wants to hear that this client became active; any
  // thread.
  Gate(Board& board, int seat, void (*ring)(void*) = nullptr, void* ring_context = nullptr);

  // Whether commands have to be counted from now on: somebody else shares the device. One relaxed load.
  bool is_shared() const noexcept {
    return seat_->in_flight.load(std::memory_order_relaxed) != 0 && is_open_.load(std::memory_order_relaxed);
  }

  // Before a command: marks the client active, then waits while one that comes first is active, or while too many of
  // its own commands are on the device. Any thread. Each enter() is followed by one leave().
  void enter() noexcept;
  // That many commands have ended, or were not launched after all. Any thread.
  void leave(std::uint32_t commands = 1) noexcept;
  // Whether a command may go now: enter() without waiting; false: nothing was counted. For who has other things to do.
  bool try_enter() noexcept;
  // Commands between enter() and leave().
  std::uint32_t pending() const noexcept { return pending_.load(std::memory_order_acquire); }

  // A client stays active for that long after its last command ended: requests are made of several launches with the
  // host's work between them. settle() ends such a request when its time is over; returns when it wants to be called
  // again, kNever where nothing is due. For the one thread that attends to the gate.
  void set_linger(std::int64_t ns) noexcept { linger_ns_.store(ns, std::memory_order_relaxed); }
  std::int64_t settle(std::int64_t now_ns) noexcept;

  // From now on nothing waits here any more, and who waits goes on: the daemon is gone, or this is a forked child.
  void open_for_good() noexcept;
  bool is_open_for_good() const noexcept { return !is_open_.load(std::memory_order_relaxed); }

  std::uint64_t launches() const noexcept { return seat_->launches.load(std::memory_order_relaxed); }
  std::uint64_t held_ns() const noexcept { return seat_->held_ns.load(std::memory_order_relaxed); }

 private:
  bool may_go() const noexcept;
  void become_active() noexcept;

  Board* board_;
  Seat* seat_;
  std::uint64_t bit_;
  void (*ring_)(void*);
  void* ring_context_;
  std::atomic<bool> is_open_{true};  // false: after open_for_good()
  std::atomic<std::uint32_t> pending_{0};
  std::atomic<std::int64_t> idle_since_ns_{0};
  std::atomic<std::int64_t> linger_ns_{100'000};
};

}  // namespace weir::scheduler
