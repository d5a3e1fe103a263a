// The events that each command waits for and records on its stream, and the one loop that submits commands with them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/device.h"

namespace weir {

using EventId = std::uint32_t;

// Streams are in order, so only edges that cross streams need an event, and only those not implied by others.
struct StepPlan {
  enum Flag : std::uint8_t {
    kWaits = 1,    // must wait for events
    kRecords = 2,  // others wait for it
    kFirst = 4,    // first command of its stream in an iteration, or in a graph
    kLast = 8,     // last command of its stream in an iteration, or in a graph
  };
  struct Hop {
    StreamId stream = 0;
    std::uint8_t flags = 0;
    std::uint32_t first_wait = 0;
    std::uint32_t wait_count = 0;
    EventId event = 0;  // valid with kRecords
  };
  std::vector<Hop> hops;       // by command
  std::vector<EventId> waits;  // flat; hops index into it
  std::uint32_t event_count = 0;
  int stream_count = 1;
};

// `is_pipelined` adds the waits that tie an iteration to the previous one.
StepPlan make_plan(const Step& step, const Placement& placement, bool is_pipelined);
// For graphs, one per segment of the step. Launches are in order, so nothing ties a segment to earlier ones: waiting
// for an event of another capture is an error on GPUs.
StepPlan make_graph_plan(const Step& step, const Placement& placement);

// The plan of a session: with or without graphs, and without the waits that are to be missing. Rejects numbers of waits
// that it does not have.
StepPlan make_plan(const Step& step, const Placement& placement, const SessionOptions& options);
// For devices that cannot hold commands up.
void reject_delays(const SessionOptions& options);
// Rejects delays that no device can keep: of commands that the step does not have, in graphs, or two of one command.
void check_delays(const Step& step, const SessionOptions& options);

// What the loop needs from a hardware queue, a graph recorder, or a test's log. All calls are noexcept.
template <class Q>
concept CommandQueue = requires(Q& queue, CommandId command, EventId event, StreamId stream) {
  { queue.launch(command, stream) } noexcept;
  { queue.record(event, stream) } noexcept;
  { queue.wait(event, stream) } noexcept;
  { queue.mark_first(stream) } noexcept;
  { queue.mark_last(stream) } noexcept;
};

// Submits `commands` in order. Every backend instantiates it in its own source. A driver call evicts a step's records
// from the nearest cache, so a queue that has records may prefetch the next one.
template <CommandQueue Q>
inline void walk(const StepPlan& plan, std::span<const CommandId> commands, Q& queue) noexcept {
  const StepPlan::Hop* const hops = plan.hops.data();
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const CommandId id = commands[i];
    if constexpr (requires { queue.prefetch(id); }) {
      if (i + 2 < commands.size()) queue.prefetch(commands[i + 2]);
    }
    const StepPlan::Hop& hop = hops[id];
    if (hop.flags == 0) [[likely]] {
      queue.launch(id, hop.stream);
      continue;
    }
    if (hop.flags & StepPlan::kFirst) queue.mark_first(hop.stream);
    for (std::uint32_t w = 0; w < hop.wait_count; ++w) queue.wait(plan.waits[hop.first_wait + w], hop.stream);
    queue.launch(id, hop.stream);
    if (hop.flags & StepPlan::kRecords) queue.record(hop.event, hop.stream);
    if (hop.flags & StepPlan::kLast) queue.mark_last(hop.stream);
  }
}

}  // namespace weir
