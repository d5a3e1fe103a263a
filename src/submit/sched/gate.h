// A client's side of the board: every command passes it before it goes to the device. Costs one load while the client
// is alone. Never makes anybody wait for a daemon that is gone. Knows no socket and no device: its owner reports when
// commands have ended.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "submit/sched/board.h"

namespace weir::scheduler {

// How a gate waits. Tests and measurements use other values.
struct GateLimits {
  // A sleeping thread passes 6.2 us after it may, a spinning one 3.1 us (bench_sched_gate, Neoverse-N1, November 2026),
  // and idle cores sleep deeper: short waits are worth a core.
  std::int64_t spin_ns = 20'000;
  std::int64_t sleep_ns = 10'000'000;   // after this time everything is checked again, whatever went wrong
  std::int64_t stuck_ns = 100'000'000;  // if none of its own commands ended for this long, the bound is ignored
  // With a loose bound, a client may have as many commands on the device as end within this time at the present rate.
  std::int64_t depth_ns = 1'000'000;
};

class Gate {
 public:
  // The board must stay mapped. `ring` is called, by any thread, if the daemon wants to know that this client became
  // active.
  Gate(Board& board, int seat, void (*ring)(void*) = nullptr, void* ring_context = nullptr,
       const GateLimits& limits = {});
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // `wake` is called by any thread, for the one that calls settle(): the first command went to the device, or settle()
  // must be called although none did. Set before the first enter().
  void set_wake(void (*wake)(void*), void* context) noexcept;

  // Whether commands must be counted from now on because somebody else shares the device. Two relaxed loads.
  bool is_shared() const noexcept {
    return seat_->in_flight.load(std::memory_order_relaxed) != 0 && is_in_force_.load(std::memory_order_relaxed);
  }

  // Whether a command can run in a part of the device.
  enum class Fits : std::uint8_t {
    whole,  // no: it waits while a client that comes first is active
    part,   // where the daemon confines this client, it waits for its own commands alone
  };

  // Call before commands: marks the client active, then waits while a client that comes first is active, or while too
  // many of its own commands are on the device. Returns how many of `most` may go: at least one. A leave() follows for
  // each of them. Any thread.
  std::uint32_t enter(std::uint32_t most = 1, Fits fits = Fits::whole) noexcept;
  // Reports that this many commands have ended, or were not launched after all. Any thread.
  void leave(std::uint32_t commands = 1) noexcept;
  // enter() without waiting, for callers with other work; on 0, no leave() follows. The attempt still counts: the
  // client stays active for its linger time after the last attempt.
  std::uint32_t try_enter(std::uint32_t most = 1, Fits fits = Fits::whole) noexcept;
  // Commands between the call of enter() and leave(): those that wait, and those on the device.
  std::uint32_t pending() const noexcept { return pending_.load(std::memory_order_seq_cst); }
  // Of these: those that passed the gate, and may have ended.
  std::uint32_t on_device() const noexcept { return on_device_.load(std::memory_order_seq_cst); }

  // How many commands may be on the device; 0: any number, the device is not shared. While all who come before this
  // client have been idle for long, that is as many as end within GateLimits::depth_ns at the rate of the last such
  // period. So a program of small kernels is not slowed down by clients that do nothing, and one that comes back still
  // finds a short queue, in time.
  std::uint32_t bound() const noexcept;
  // In how many percent of the device commands that can shall run at this moment; 0: in all of it.
  std::uint32_t confines_to() const noexcept;
  // What it would be; 0: this daemon confines nobody.
  std::uint32_t part_percent() const noexcept { return seat_->part_percent.load(std::memory_order_relaxed); }
  void set_confinable(Confinable state) noexcept {
    seat_->confinable.store(static_cast<std::uint32_t>(state), std::memory_order_relaxed);
  }
  void count_confined() noexcept { seat_->confined.fetch_add(1, std::memory_order_relaxed); }
  // How long the longest commands of late took, for the daemon's choices.
  void set_command_ns(std::int64_t ns) noexcept { seat_->command_ns.store(ns, std::memory_order_relaxed); }
  bool is_loose() const noexcept { return seat_->is_loose.load(std::memory_order_relaxed) != 0; }
  // Whether another client was active lately: it may wait to see this one end.
  bool has_company() const noexcept { return (board_->recent.load(std::memory_order_relaxed) & ~bit_) != 0; }

  // A client stays active for this long after its last command ended: requests consist of several launches with the
  // host's work between them. settle() ends such a request when its time is over, and returns when it must be called
  // again, or kNever if nothing is due. Only for one thread, which `wake` wakes.
  void set_linger(std::int64_t ns) noexcept { linger_ns_.store(ns, std::memory_order_relaxed); }
  std::int64_t settle(std::int64_t now_ns) noexcept;

  // From now on nothing waits here, and waiting threads continue: the daemon is gone.
  void open_for_good() noexcept;
  // The same in a forked child, where nobody waits: the seat and its bit belong to the parent.
  void open_in_child() noexcept { is_in_force_.store(false, std::memory_order_seq_cst); }
  bool is_open_for_good() const noexcept { return !is_in_force_.load(std::memory_order_relaxed); }

  std::uint64_t launches() const noexcept { return seat_->launches.load(std::memory_order_relaxed); }
  std::uint64_t held() const noexcept { return seat_->held.load(std::memory_order_relaxed); }
  std::uint64_t held_ns() const noexcept { return seat_->held_ns.load(std::memory_order_relaxed); }

 private:
  enum class Hold : std::uint8_t { none, others, own };  // what a command waits for
  Hold holds(std::uint32_t on_device, Fits fits) const noexcept;
  Hold admit(std::uint32_t most, Fits fits, std::uint32_t* admitted) noexcept;
  Confine confine() const noexcept { return static_cast<Confine>(seat_->confine.load(std::memory_order_relaxed)); }
  void admit_anyway() noexcept;
  void become_active() noexcept;
  [[gnu::noinline]] void wait_for_turn(Hold hold, std::uint32_t most, Fits fits, std::uint32_t* admitted) noexcept;
  void measure_rate(std::uint32_t ended, std::int64_t now_ns) noexcept;
  void sleep(Hold hold, Fits fits, std::int64_t max_ns) noexcept;
  void end_request() noexcept;
  void wake_own() noexcept;
  void wake_settler() const noexcept {
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
  // Like turn and waiting of the board, for threads that wait for this client's own commands.
  std::atomic<std::uint32_t> own_turn_{0};
  std::atomic<std::uint32_t> own_waiting_{0};
  std::atomic<std::int64_t> idle_since_ns_{0};
  // The present period of measure_rate(): its begin, and how many commands have ended in it.
  std::atomic<std::int64_t> period_ns_{0};
  std::atomic<std::uint32_t> period_ended_{0};
  std::atomic<std::uint32_t> depth_{0};  // the bound that follows from the last period
  std::atomic<std::int64_t> linger_ns_{100'000};
  // How long the latest requests took, by the thread that calls settle().
  std::array<std::int64_t, kRequestWindow> requests_ns_{};
  std::uint64_t requests_ = 0;
};

}  // namespace weir::scheduler
