// How threads wait for each other at a channel: outcomes, limits, and the event they sleep on. Knows no channel.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "channel/system.h"

namespace weir {

// The result of a push or a pop.
enum class Outcome : std::uint8_t {
  done,
  full,    // nothing was pushed
  empty,   // there is nothing to pop now
  closed,  // push: nothing was pushed, nor ever will be; pop: everything that was pushed has been popped
  late,    // the deadline passed; nothing was pushed or popped
  missed,  // a broadcast consumer that may miss commands missed some and learns how many; nothing was popped
};
constexpr std::string_view name_of(Outcome outcome) {
  constexpr std::string_view kNames[] = {"done", "full", "empty", "closed", "late", "missed"};
  return kNames[static_cast<int>(outcome)];
}

// How threads wait, on both sides of a channel.
enum class Wait : std::uint8_t {
  spin,            // never sleeps
  spin_then_park,  // sleeps after some tens of microseconds of spinning
  park,            // sleeps at once
};
constexpr std::string_view name_of(Wait wait) {
  constexpr std::string_view kNames[] = {"spin", "spin_then_park", "park"};
  return kNames[static_cast<int>(wait)];
}

// How long a caller waits.
struct Limit {
  std::int64_t deadline_ns = 0;  // on the clock of now_ns(); 0: not at all

  static constexpr Limit none() noexcept { return {0}; }
  static constexpr Limit forever() noexcept { return {INT64_MAX}; }
  static constexpr Limit until(std::int64_t deadline_ns) noexcept { return {std::max<std::int64_t>(1, deadline_ns)}; }
  static Limit within(std::int64_t ns) noexcept { return until(now_ns() + ns); }

  bool is_none() const noexcept { return deadline_ns == 0; }
  bool is_past() const noexcept { return deadline_ns != INT64_MAX && now_ns() >= deadline_ns; }
};

// Threads sleep here until the condition they wait for has changed. The thread that changes it calls notify()
// afterwards; that costs one load while nobody sleeps.
template <Wait kWait, class Sync>
class Event {
 public:
  void notify(int threads = 1) noexcept {
    if constexpr (kWait != Wait::spin) {
      // Pairs with the fence in prepare(): the notifier sees the sleeper, or the sleeper sees the change.
      if constexpr (kWait == Wait::park) {
        Sync::full_fence();
      } else {
        Sync::light_fence();
      }
      if (sleepers_.load(std::memory_order_relaxed) != 0) [[unlikely]]
        wake(threads);
    }
  }
  void notify_all() noexcept { notify(INT_MAX); }

  // Announces a sleeper. The condition must be checked once more before wait(); leave() follows in any case.
  std::uint32_t prepare() noexcept {
    sleepers_.fetch_add(1, std::memory_order_relaxed);                 // ordered by the fence below
    const std::uint32_t key = epoch_.load(std::memory_order_relaxed);  // likewise: its writer has passed its fence
    if constexpr (kWait == Wait::park) {
      Sync::full_fence();
    } else {
      Sync::heavy_fence();
    }
    return key;
  }
  // False: the deadline passed.
  bool wait(std::uint32_t key, Limit limit) noexcept { return Sync::wait(epoch_, key, limit.deadline_ns); }
  void leave() noexcept { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  [[gnu::noinline]] void wake(int threads) noexcept {
    epoch_.fetch_add(1, std::memory_order_relaxed);  // ordered by the fence in notify()
    Sync::wake(epoch_, threads);
  }

  alignas(kApart) typename Sync::template Atomic<std::uint32_t> sleepers_{0};
  typename Sync::template Atomic<std::uint32_t> epoch_{0};
};

// Whether a thread that was woken and succeeded wakes another. Needed if cells become ready out of order: of two
// commands, the second may be published first. Its wake-up goes to a consumer that cannot pop yet and sleeps again, and
// the first one's goes to that same consumer; the second command would wait there beside a sleeping consumer.
enum class PassOn : bool { no, yes };

// Repeats `attempt` until its outcome is not `again`, or the limit has passed; then `late`. Without a limit, returns
// the outcome of the first attempt.
template <Wait kWait, class Sync, PassOn kPassOn = PassOn::no, class Attempt>
Outcome await(Event<kWait, Sync>& event, Limit limit, Outcome again, Attempt&& attempt) noexcept {
  Outcome outcome = attempt();
  if (outcome != again || limit.is_none()) [[likely]]
    return outcome;
  if constexpr (kWait != Wait::park) {
    for (int spins = 0; kWait == Wait::spin || spins < Sync::kSpinsBeforePark; spins = Sync::next_spin(spins)) {
      Sync::relax(spins);
      outcome = attempt();
      if (outcome != again) return outcome;
      // Reading the clock costs as much as several attempts.
      if ((spins & 15) == 15 && limit.is_past()) return Outcome::late;
    }
  }
  if constexpr (kWait != Wait::spin) {
    for (;;) {
      const std::uint32_t key = event.prepare();
      outcome = attempt();
      if (outcome == again && !event.wait(key, limit)) {
        event.leave();
        // A change between the timeout and now still counts.
        outcome = attempt();
        if (outcome == again) return Outcome::late;
        if constexpr (kPassOn == PassOn::yes) event.notify();
        return outcome;
      }
      event.leave();
      if (outcome == again) outcome = attempt();
      if (outcome != again) {
        if constexpr (kPassOn == PassOn::yes) event.notify();
        return outcome;
      }
      if (limit.is_past()) return Outcome::late;
    }
  } else {
    __builtin_unreachable();
  }
}

}  // namespace weir
