// Holds other people's launches: tracks which of a program's commands are on the device, with marks that it records
// after them, and obeys the scheduler's gate. One per process. Knows no vendor: that is a table of functions. Never
// makes a program fail: commands that cannot be marked are not counted.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "submit/sched/gate.h"

namespace weir::inject {

using Context = void*;
using Event = void*;

struct Stream {
  void* handle = nullptr;     // as `record` takes it
  bool is_of_thread = false;  // the same handle is another stream in each thread
};

// A vendor's driver.
struct GateDriver {
  enum class State { running, ended, lost };
  // What begin() saves for end(). One type for all vendors.
  struct Visit {
    Context previous = nullptr;
    int mode = 0;
    bool has_context = false, has_mode = false, was_clean = false;
  };

  // The context whose events can be recorded in that stream. Null: commands in it must be left alone, because they
  // become part of a graph instead of running, because they run on a device that is not scheduled, or because it is
  // unknown.
  Context (*context_of)(void* stream) = nullptr;
  // Between these a thread may call the functions below, even one that captures a stream or never had a context.
  bool (*begin)(Context context, Visit* visit) = nullptr;
  void (*end)(const Visit& visit) = nullptr;
  Event (*make)() = nullptr;  // null: it failed
  bool (*record)(Event event, void* stream) = nullptr;
  State (*query)(Event event) = nullptr;
  void (*drop)(Event event) = nullptr;
};

// While one of these exists, the calling thread may call the driver in this context, whatever is captured.
class Visiting {
 public:
  Visiting(const GateDriver& driver, Context context) noexcept
      : driver_(driver), is_in_(driver.begin(context, &visit_)) {}
  ~Visiting() {
    if (is_in_) driver_.end(visit_);
  }
  Visiting(const Visiting&) = delete;
  Visiting& operator=(const Visiting&) = delete;
  explicit operator bool() const noexcept { return is_in_; }

 private:
  const GateDriver& driver_;
  GateDriver::Visit visit_{};
  bool is_in_;
};

class LaunchGate {
 public:
  LaunchGate(scheduler::Gate& gate, const GateDriver& driver);

  bool is_shared() const noexcept { return !is_off_.load(std::memory_order_relaxed) && gate_->is_shared(); }
  // Call before a command: waits until it may go. Pass the result to after(); null: the command is not counted, and
  // after() must not be called.
  Context before(Stream stream, scheduler::Gate::Fits fits = scheduler::Gate::Fits::whole) noexcept {
    return is_shared() ? hold(stream, fits) : nullptr;
  }
  // Call after a command, in the thread that launched it.
  void after(Stream stream, Context context, bool was_launched) noexcept;
  scheduler::Gate& gate() noexcept { return *gate_; }
  // Finds out which commands have ended. Any thread; costs one query for each busy stream.
  void look() noexcept;
  // Call before a context is, or may be, destroyed: drops all events. Their commands no longer count.
  void forget() noexcept;
  // From now on nothing is held and no event is touched: the process ends.
  void turn_off() noexcept;
  // Like turn_off(), in a forked child: takes no lock, because the thread that held it does not exist here.
  void abandon() noexcept { is_off_.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kMarks = 16;  // per stream; further commands move the last one
  static constexpr std::size_t kLanes = 128, kSpares = 64;

  struct Mark {
    Event event = nullptr;
    std::uint32_t commands = 0;
    std::int64_t made_ns = 0;
  };
  // The marks of one stream, in order. Exists only while there are any, so that a reused handle is a new stream.
  struct Lane {
    Context context = nullptr;
    void* handle = nullptr;
    const void* thread = nullptr;
    std::array<Mark, kMarks> marks{};
    std::size_t first = 0, count = 0;
    std::int64_t ended_ns = 0;  // its last mark that was reached
  };
  // How much time went into commands of each length: four steps to a factor of two, from a microsecond on.
  struct Lengths {
    std::array<double, 128> ns{};
    std::int64_t faded_ns = 0;
  };
  struct Spare {
    Context context;
    Event event;
  };

  Context hold(Stream stream, scheduler::Gate::Fits fits) noexcept;
  void wait(scheduler::Gate::Fits fits) noexcept;
  void measure(std::int64_t ns) noexcept;
  bool mark(Stream stream, Context context) noexcept;
  Event take_event(Context context) noexcept;
  void keep_event(Context context, Event event) noexcept;
  std::uint32_t collect(Lane& lane) noexcept;

  scheduler::Gate* gate_;
  const GateDriver* driver_;
  std::atomic<bool> is_off_{false};
  std::mutex mutex_;  // protects everything below; held during driver calls, so taken where the driver holds no lock
  std::vector<Lane> lanes_;
  std::vector<Spare> spares_;
  Lengths lengths_;
};

}  // namespace weir::inject
