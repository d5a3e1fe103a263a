// The traced pass: two timing events around every command. Knows commands, events and clocks; not what a command is.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "device/gpu/clock.h"
#include "device/plan.h"

namespace weir {

// Keeps the last iterations: as many as requested, if they fit into a bounded number of events.
class CommandEvents {
 public:
  CommandEvents(const GpuApi& api, DeviceClock& clock, std::size_t commands, int iterations);

  void begin() noexcept;
  // Several threads may call the next three at once, each for its own commands.
  int start(CommandId command, GpuStream stream) noexcept {
    submitted_ns_[first_ + command] = now_ns();
    return api_.event_record(events_[2 * (first_ + command)].get(), stream);
  }
  void accepted(CommandId command) noexcept { accepted_ns_[first_ + command] = now_ns(); }
  int end(CommandId command, GpuStream stream) noexcept {
    return api_.event_record(events_[2 * (first_ + command) + 1].get(), stream);
  }

  // Everything kept so far, by iteration and command. Call while nothing runs.
  Timeline timeline(const Step& step, const Placement& placement);

 private:
  const GpuApi& api_;
  DeviceClock& clock_;
  std::size_t commands_;
  std::size_t slots_;
  std::vector<GpuEventOwner> events_;       // slot, command, start and end
  std::vector<std::int64_t> submitted_ns_;  // slot, command
  std::vector<std::int64_t> accepted_ns_;   // the same
  std::vector<std::uint32_t> base_;         // of the clock, by slot
  std::size_t first_ = 0;                   // first command of the current slot
  std::uint64_t begun_ = 0;                 // iterations
};

}  // namespace weir
