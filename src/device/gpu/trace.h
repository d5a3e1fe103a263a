// The traced pass: two timing events around every command, or none if a profiler around this process has its times.
// Knows commands, events and clocks; not what a command is.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "device/gpu/clock.h"
#include "device/gpu/commands.h"
#include "device/plan.h"

namespace weir {

// Before the first session: this process runs under a profiler that has the device's times, so traced sessions keep the
// host's alone.
void trace_from_outside() noexcept;
bool is_traced_from_outside() noexcept;

// Keeps the last iterations: as many as requested, if they fit into a bounded number of events.
class CommandEvents {
 public:
  CommandEvents(const GpuApi& api, DeviceClock& clock, std::size_t commands, int iterations);
  // Without events: only the host's own times are kept, and each span has the call that submitted it.
  CommandEvents(const GpuApi& api, DeviceClock& clock, GpuCommands& commands, std::size_t count, int iterations);

  void begin() noexcept;
  // Several threads may call the next three at once, each for its own commands.
  int start(CommandId command, GpuStream stream) noexcept {
    submitted_ns_[first_ + command] = now_ns();
    if (host_ != nullptr) {
      thread_[first_ + command] = own_thread();
      return 0;
    }
    return api_.event_record(events_[2 * (first_ + command)].get(), stream);
  }
  void accepted(CommandId command) noexcept { accepted_ns_[first_ + command] = now_ns(); }
  int end(CommandId command, GpuStream stream) noexcept {
    if (host_ != nullptr) return 0;
    return api_.event_record(events_[2 * (first_ + command) + 1].get(), stream);
  }

  // Everything kept so far, by iteration and command. Call while nothing runs.
  Timeline timeline(const Step& step, const Placement& placement);

 private:
  static std::uint32_t own_thread() noexcept;
  void add_host_times(Timeline& timeline, std::size_t index) const;

  const GpuApi& api_;
  DeviceClock& clock_;
  GpuCommands* host_ = nullptr;  // without events: has the times of host functions
  std::size_t commands_;
  std::size_t slots_;
  std::vector<GpuEventOwner> events_;       // slot, command, start and end
  std::vector<std::int64_t> submitted_ns_;  // slot, command
  std::vector<std::int64_t> accepted_ns_;   // the same
  std::vector<std::uint32_t> thread_;       // the same, without events
  std::vector<std::uint32_t> base_;         // of the clock, by slot
  std::size_t first_ = 0;                   // first command of the current slot
  std::uint64_t begun_ = 0;                 // iterations
};

}  // namespace weir
