// The traced pass: the driver's profiling times of every command. Knows commands, events and clocks.
#pragma once

#include "device/opencl/commands.h"

#if WEIR_HAVE_OPENCL
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "device/clock_map.h"

namespace weir {

// Keeps the last iterations: as many as requested, if they fit into a bounded number of events.
class OpenclTrace {
 public:
  OpenclTrace(const OpenclContext& context, std::size_t commands, int iterations);
  ~OpenclTrace();
  OpenclTrace(const OpenclTrace&) = delete;
  OpenclTrace& operator=(const OpenclTrace&) = delete;

  std::size_t slots() const noexcept { return slots_; }
  void begin() noexcept;
  // Several threads may call the next two at once, each for its own commands.
  void submitted(CommandId command) noexcept { entries_[first_ + command].submitted_ns = now_ns(); }
  // Takes ownership of the events; `begin` may be null.
  void accepted(CommandId command, cl_event begin, cl_event end) noexcept {
    Entry& entry = entries_[first_ + command];
    entry.accepted_ns = now_ns();
    entry.begin = begin;
    entry.end = end;
  }

  // Everything kept so far, by iteration and command. Call while nothing runs. `hosts` may be null.
  Timeline timeline(const Step& step, const Placement& placement, const OpenclCommands& commands,
                    const OpenclHostCalls* hosts);

 private:
  struct Entry {
    std::int64_t submitted_ns = kNoTime, accepted_ns = kNoTime;
    cl_event begin = nullptr, end = nullptr;
  };
  void forget(Entry& entry) noexcept;
  // One moment on both clocks; empty if the driver has no timer.
  std::optional<ClockFix> take_fix() const noexcept;
  ClockMap clock_map() const;

  const OpenclContext& context_;
  const OpenclApi& api_;
  std::size_t commands_;
  std::size_t slots_;
  std::vector<Entry> entries_;  // slot, command
  std::size_t first_ = 0;       // first command of the current slot
  std::uint64_t begun_ = 0;     // iterations
  std::optional<ClockFix> first_fix_;
};

}  // namespace weir
#endif
