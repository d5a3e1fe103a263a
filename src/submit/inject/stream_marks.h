// Finds out how far a program's streams have come: now and then records an event after a command, and asks from another
// thread whether it has been reached. Knows no vendor; never makes a program fail.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "submit/inject/launch_gate.h"

namespace weir::inject {

class StreamMarks {
 public:
  // What was reached: the first `number` commands of the stream at `place` have ended, within `error_ns` before now.
  struct Reached {
    std::uint32_t place = 0;
    std::uint64_t number = 0;
    std::int64_t error_ns = 0;
  };

  // At most one mark per `period_ns`: each costs the thread that launches a few microseconds.
  StreamMarks(const GateDriver& driver, std::int64_t period_ns);

  // Call after a command, in the thread that launched it.
  void after(void* stream, std::uint32_t place, std::uint64_t number, std::int64_t now_ns) noexcept;
  // Asks for the marks that are due, oldest first, and calls use(Reached) for each that was reached.
  template <class Use>
  void look(std::int64_t now_ns, Use&& use) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < pending_.size() && !is_off_;)
      if (const State state = ask(i, now_ns); state == State::running) {
        ++i;
      } else {
        const Mark mark = pending_[i];
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
        if (state == State::ended) use(Reached{mark.place, mark.number, now_ns - std::max(mark.asked_ns, mark.made_ns)});
      }
    looked_ns_ = now_ns;
  }
  bool is_waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  // Call before a context is, or may be, destroyed, and before recording ends: drops all events.
  void forget() noexcept;
  // From now on the driver is not called: the process ends, or is a forked child, where no lock may be taken.
  void turn_off() noexcept { is_off_.store(true); }

 private:
  using State = GateDriver::State;
  static constexpr std::size_t kMarks = 256, kSpares = 64;
  struct Mark {
    Context context = nullptr;
    Event event = nullptr;
    std::uint32_t place = 0;
    std::uint64_t number = 0;
    std::int64_t made_ns = 0, asked_ns = 0;
  };
  struct Spare {
    Context context = nullptr;
    Event event = nullptr;
  };
  State ask(std::size_t at, std::int64_t now_ns) noexcept;

  const GateDriver& driver_;
  std::int64_t period_ns_;
  std::atomic<std::int64_t> marked_ns_{0};
  std::atomic<bool> is_off_{false}, waiting_{false};
  std::mutex mutex_;  // protects what follows; held during calls of the driver, so taken where the driver holds no lock
  std::int64_t looked_ns_ = 0;
  std::vector<Mark> pending_;  // oldest first
  std::vector<Spare> spares_;
};

}  // namespace weir::inject
