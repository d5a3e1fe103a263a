// The log that a step leaves, made from its plan instead of a run: every range is exact. Buffers get addresses that
// they have nowhere else. Runs nothing.
#pragma once

#include <cstdint>
#include <span>

#include "device/device.h"
#include "lab/race/log.h"

namespace weir::race {

// A command of a step that runs again and again.
struct StepCommand {
  std::uint32_t iteration = 0;
  CommandId command = 0;
  friend auto operator<=>(const StepCommand&, const StepCommand&) = default;
};
// Which one a call of such a log is; for commands only.
StepCommand command_of(const Step& step, const Call& call);

// Two iterations that follow each other without a wait of the host if it is pipelined, otherwise one. `missing_waits`
// are numbers in StepPlan::waits; those are left out.
Log log_of(const Step& step, const Placement& placement, std::span<const std::uint32_t> missing_waits,
           bool is_pipelined = false);

// Where a buffer begins in such a log.
std::uint64_t address_of(const Step& step, BufferId buffer);

}  // namespace weir::race
