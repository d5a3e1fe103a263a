// A segment of a step recorded as one graph: captured from its streams by the same loop that submits eagerly, and
// launched as a whole.
#pragma once

#include <span>

#include "device/gpu/commands.h"
#include "device/plan.h"

namespace weir {

class StepGraph {
 public:
  // Captures commands [begin, end) on `streams` and launches on the first of them. `events` are those of the plan,
  // which must be a graph plan.
  StepGraph(PrimaryContext& context, const StepPlan& plan, CommandId begin, CommandId end, const GpuCommands& commands,
            std::span<const GpuStream> streams, std::span<const GpuEvent> events);

  int launch() const noexcept { return api_.graph_launch(exec_.get(), stream_); }

 private:
  const GpuApi& api_;
  GpuStream stream_;
  GpuGraphExecOwner exec_;
};

}  // namespace weir
