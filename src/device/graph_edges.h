// A segment of a step recorded as a graph of dependencies. Knows commands and their order; runs nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "device/plan.h"

namespace weir {

// All arrays are indexed by command - begin.
struct GraphEdges {
  CommandId begin = 0;
  std::uint32_t count = 0;
  std::vector<CommandId> roots;
  std::vector<CommandId> successors;
  std::vector<std::uint32_t> successor_begin;  // count + 1 entries
  std::vector<std::uint32_t> predecessor_count;

  std::uint64_t size_bytes() const noexcept {
    return 4 * (roots.size() + successors.size() + successor_begin.size() + predecessor_count.size());
  }
};

// Records commands [begin, end) with the same loop that submits eagerly: the placement's stream order and the plan's
// events become edges.
GraphEdges record_graph(const StepPlan& plan, CommandId begin, CommandId end);

}  // namespace weir
