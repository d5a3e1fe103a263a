// The traced pass: what the driver's profiling says about every command. Knows commands, events and clocks.
#pragma once

#include "device/opencl/commands.h"

#if WEIR_HAVE_OPENCL
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "device/clock_map.h"

namespace weir {

// Keeps the last iterations, as many as were asked for and as fit into a bounded number of events.
class OpenclTrace {
 public:
  OpenclTrace(const OpenclContext& context, std::size_t commands, int iterations);
  ~OpenclTrace();
  OpenclTrace(const OpenclTrace&) = delete;
  OpenclTrace& operator=(const OpenclTrace&) = delete;

  std::size_t slots() const noexcept { return slots_; }
  void begin() noexcept;
  // The two below may run in several threads at once, each with commands of its own.
  void submitted(CommandId command) noexcept { entries_[first_ + command].submitted_ns = now_ns(); }
  // Owns the events; `begin` may be null.
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
  // A moment on both clocks; nothing where the driver has no timer.
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
