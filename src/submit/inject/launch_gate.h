// What holds other people's launches: knows which of a program's commands are on the device, by marks that it puts
// behind them, and keeps to what the scheduler's gate says. One per process. Knows no vendor: that is a table of
// functions. Never makes a program fail: what cannot be marked is not counted.
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
  // What begin() saved for end(). One for all vendors.
  struct Visit {
    Context previous = nullptr;
    int mode = 0;
    bool has_context = false, has_mode = false, was_clean = false;
  };

  // Whose events can be recorded in that stream. Null: commands in it are to be left alone, because they become part of
  // a graph instead of running, because they run on a device that is not scheduled, or because it cannot be told.
  Context (*context_of)(void* stream) = nullptr;
  // Between these a thread may call what is below, even one that captures a stream or never had a context.
  bool (*begin)(Context context, Visit* visit) = nullptr;
  void (*end)(const Visit& visit) = nullptr;
  Event (*make)() = nullptr;  // null: it failed
  bool (*record)(Event event, void* stream) = nullptr;
  State (*query)(Event event) = nullptr;
  void (*drop)(Event event) = nullptr;
};

class LaunchGate {
 public:
  LaunchGate(scheduler::Gate& gate, const GateDriver& driver);

  bool is_shared() const noexcept { return !is_off_.load(std::memory_order_relaxed) && gate_->is_shared(); }
  // Before a command: waits until it may go. What it returns goes to after(); null: the command is not counted, and
  // nothing is to follow.
  Context before(Stream stream) noexcept { return is_shared() ? hold(stream) : nullptr; }
  // Behind a command, in the thread that launched it.
  void after(Stream stream, Context context, bool was_launched) noexcept;
  // Finds out which commands have ended. Any thread; costs one query for each stream that is busy.
  void look() noexcept;
  // A context is about to go, or may be: no event is touched any more. Commands that were counted are not.
  void forget() noexcept;
  // Nothing is held from now on, and no event is touched: the process ends.
  void turn_off() noexcept;
  // As turn_off(), in a forked child: takes no lock, because the thread that held it is not here.
  void abandon() noexcept { is_off_.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kMarks = 16;  // of one stream; further commands move the last one
  static constexpr std::size_t kLanes = 128, kSpares = 64;

  struct Mark {
    Event event = nullptr;
    std::uint32_t commands = 0;
  };
  // The marks of one stream, in order. Exists while there are any, so that a handle that is used again is a new stream.
  struct Lane {
    Context context = nullptr;
    void* handle = nullptr;
    const void* thread = nullptr;
    std::array<Mark, kMarks> marks{};
    std::size_t first = 0, count = 0;
  };
  struct Spare {
    Context context;
    Event event;
  };

  Context hold(Stream stream) noexcept;
  void wait() noexcept;
  bool mark(Stream stream, Context context) noexcept;
  Event take_event(Context context) noexcept;
  void keep_event(Context context, Event event) noexcept;
  std::uint32_t collect(Lane& lane) noexcept;

  scheduler::Gate* gate_;
  const GateDriver* driver_;
  std::atomic<bool> is_off_{false};
  std::mutex mutex_;  // over everything below; held around calls of the driver, so taken where that holds no lock
  std::vector<Lane> lanes_;
  std::vector<Spare> spares_;
};

}  // namespace weir::inject
