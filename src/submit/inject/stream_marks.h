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
  // How many commands a stream has, how many of these are known to have ended, and when the last was submitted.
  struct Counts {
    std::uint64_t submitted = 0, ended = 0;
    std::int64_t submitted_ns = 0;
  };

  // At most one mark per `period_ns` by the threads that launch: each costs them a few microseconds. Streams have
  // places below `places`.
  StreamMarks(const GateDriver& driver, std::int64_t period_ns, std::uint32_t places);

  // A stream in which this class may record events from any thread.
  void know(std::uint32_t place, void* stream, Context context) noexcept;
  // Call before a stream is destroyed.
  void before_end(void* stream) noexcept;
  // Call before a capture begins anywhere: from then on until this is called with false only threads that launch record
  // events, because a stream may begin to be captured after it was asked whether it is.
  void set_captures(bool is_any) noexcept;
  // Call after a command, in the thread that launched it. `is_wanted`: whatever the period.
  void after(void* stream, std::uint32_t place, std::uint64_t number, std::int64_t now_ns,
             bool is_wanted = false) noexcept;
  // Asks for the marks that are due, oldest first, and calls use(Reached) for each that was reached; then
  // pending(place, number) for each stream whose oldest mark that was not reached is another one than before; 0: none
  // is left.
  template <class Use, class Pending>
  void look(std::int64_t now_ns, Use&& use, Pending&& pending) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < pending_.size() && !is_off_;)
      if (const State state = ask(i, now_ns); state == State::running) {
        ++i;
      } else {
        const Mark mark = pending_[i];
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
        if (state == State::ended && mark.place != kNowhere)
          use(Reached{mark.place, mark.number, now_ns - std::max(mark.asked_ns, mark.made_ns)});
      }
    looked_ns_ = now_ns;
    for (std::uint32_t place = 0; place < known_end_; ++place) known_[place].oldest = 0;
    for (const Mark& mark : pending_)
      if (mark.place != kNowhere && known_[mark.place].oldest == 0) known_[mark.place].oldest = mark.number;
    for (std::uint32_t place = 0; place < known_end_; ++place)
      if (Known& known = known_[place]; known.oldest != known.reported) pending(place, known.reported = known.oldest);
  }
  // Marks the end of streams that have been quiet for a while: counts(place) says how far they are. Without this the
  // last commands before a pause would never be known to have ended.
  template <class GetCounts>
  void mark_ends(std::int64_t now_ns, GetCounts&& counts) {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t place = 0; place < known_end_ && !is_off_ && !has_captures_; ++place) {
      if (known_[place].stream == nullptr || known_[place].context == nullptr) continue;
      const Counts now = counts(place);
      // A full stream would keep this thread waiting in the driver.
      if (now.submitted <= known_[place].marked || now_ns - now.submitted_ns < kQuietNs ||
          now.submitted - now.ended > kMostBefore)
        continue;
      mark_end(place, now.submitted, now_ns);
    }
  }
  bool is_waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  // Call before a context is, or may be, destroyed, and before recording ends: drops all events.
  void forget() noexcept;
  // From now on the driver is not called: the process ends, or is a forked child, where no lock may be taken.
  void turn_off() noexcept { is_off_.store(true); }

 private:
  using State = GateDriver::State;
  static constexpr std::size_t kMarks = 256, kSpares = 64;
  static constexpr std::int64_t kQuietNs = 1'000'000;
  static constexpr std::uint32_t kNowhere = UINT32_MAX;  // the place of a stream that is gone
  static constexpr std::uint64_t kMostBefore = 500;      // hardware queues hold 1,024 commands (H200)
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
  struct Known {
    void* stream = nullptr;
    Context context = nullptr;
    std::uint64_t marked = 0;  // the newest mark stands after this command
    std::uint64_t oldest = 0, reported = 0;
  };
  State ask(std::size_t at, std::int64_t now_ns) noexcept;
  Event recorded(Context context, void* stream) noexcept;
  void mark_end(std::uint32_t place, std::uint64_t number, std::int64_t now_ns) noexcept;
  void add(Context context, Event event, std::uint32_t place, std::uint64_t number, std::int64_t now_ns) noexcept;

  const GateDriver& driver_;
  std::int64_t period_ns_;
  std::atomic<std::int64_t> marked_ns_{0};
  std::atomic<bool> is_off_{false}, waiting_{false};
  std::mutex mutex_;  // protects what follows; held during calls of the driver, so taken where the driver holds no lock
  std::int64_t looked_ns_ = 0;
  std::vector<Mark> pending_;  // oldest first
  std::vector<Spare> spares_;
  std::vector<Known> known_;  // by place
  std::uint32_t known_end_ = 0;
  bool has_captures_ = false;
};

}  // namespace weir::inject
