#include "device/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace weir {
namespace {

constexpr EventId kNoEvent = std::numeric_limits<EventId>::max();

// The known progress in each stream: 0 means none, p means that the stream's p-th command has ended.
using Progress = std::vector<std::uint32_t>;

void merge(Progress& into, const Progress& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
}

// A command's dependencies on earlier segments are ignored; `segments` is [0, count] to keep all of them.
StepPlan make(const Step& step, const Placement& placement, bool is_pipelined, std::span<const CommandId> segments) {
  const auto count = static_cast<CommandId>(step.commands().size());
  if (placement.stream_of.size() != count) fail("the placement belongs to another step");
  const auto streams = static_cast<std::size_t>(placement.stream_count);

  StepPlan plan;
  plan.stream_count = placement.stream_count;
  plan.hops.resize(count);
  std::vector<std::uint32_t> position(count);
  std::vector<std::uint32_t> length(streams, 0);
  std::vector<CommandId> segment_begin(count, 0);
  std::vector<CommandId> last_on(streams);
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    std::fill(last_on.begin(), last_on.end(), count);
    for (CommandId id = segments[i]; id < segments[i + 1]; ++id) {
      segment_begin[id] = segments[i];
      const StreamId stream = placement.stream_of[id];
      if (stream >= streams) fail("the placement names a stream that it does not have");
      if (last_on[stream] == count) plan.hops[id].flags |= StepPlan::kFirst;
      last_on[stream] = id;
    }
    for (const CommandId last : last_on)
      if (last != count) plan.hops[last].flags |= StepPlan::kLast;
  }
  std::vector<bool> crosses(count, false);  // has a successor on another stream: its progress must be remembered
  for (CommandId id = 0; id < count; ++id) {
    const StreamId stream = placement.stream_of[id];
    plan.hops[id].stream = stream;
    position[id] = ++length[stream];
    for (const CommandId before : step.predecessors(id))
      if (placement.stream_of[before] != stream) crosses[before] = true;
  }

  std::vector<Progress> known(streams, Progress(streams, 0));       // what each stream has waited for, also indirectly
  std::vector<Progress> known_last(streams, Progress(streams, 0));  // the same for the previous iteration
  std::vector<Progress> reached(count);                             // by command; set if others may wait for it
  std::vector<EventId> event_of(count, kNoEvent);
  const auto event_for = [&](CommandId id) {
    if (event_of[id] == kNoEvent) event_of[id] = plan.event_count++;
    return event_of[id];
  };
  std::vector<CommandId> latest(streams);
  std::vector<CommandId> needed;
  // Of several predecessors on one stream, only the last matters.
  const auto last_per_stream = [&](std::span<const CommandId> before, StreamId own, CommandId since) {
    needed.clear();
    std::fill(latest.begin(), latest.end(), count);
    for (const CommandId id : before) {
      const StreamId stream = plan.hops[id].stream;
      if (id >= since && stream != own && (latest[stream] == count || position[latest[stream]] < position[id]))
        latest[stream] = id;
    }
    for (const CommandId id : latest)
      if (id != count) needed.push_back(id);
  };

  for (CommandId id = 0; id < count; ++id) {
    StepPlan::Hop& hop = plan.hops[id];
    hop.first_wait = static_cast<std::uint32_t>(plan.waits.size());
    Progress& mine = known[hop.stream];

    last_per_stream(step.predecessors(id), hop.stream, segment_begin[id]);
    for (const CommandId before : needed) {
      const StreamId other = plan.hops[before].stream;
      if (mine[other] >= position[before]) continue;
      const bool is_implied = std::any_of(needed.begin(), needed.end(), [&](CommandId rival) {
        return rival != before && reached[rival][other] >= position[before];
      });
      if (!is_implied) plan.waits.push_back(event_for(before));
    }
    for (const CommandId before : needed) merge(mine, reached[before]);

    if (is_pipelined) {
      last_per_stream(step.carried(id), hop.stream, 0);
      for (const CommandId before : needed) {
        std::uint32_t& waited = known_last[hop.stream][plan.hops[before].stream];
        if (waited >= position[before]) continue;
        waited = position[before];
        plan.waits.push_back(event_for(before));
      }
    }

    hop.wait_count = static_cast<std::uint32_t>(plan.waits.size()) - hop.first_wait;
    mine[hop.stream] = position[id];
    if (crosses[id]) reached[id] = mine;
    if (hop.wait_count != 0) hop.flags |= StepPlan::kWaits;
  }
  for (CommandId id = 0; id < count; ++id) {
    if (event_of[id] == kNoEvent) continue;
    plan.hops[id].flags |= StepPlan::kRecords;
    plan.hops[id].event = event_of[id];
  }
  return plan;
}

void leave_out(StepPlan& plan, std::span<const std::uint32_t> missing) {
  std::vector<bool> is_missing(plan.waits.size(), false);
  for (const std::uint32_t number : missing) {
    if (number >= plan.waits.size())
      reject(fmt::format("wait {} cannot be left out: the plan has {}", number, plan.waits.size()),
             plan.waits.empty() ? "Use more streams, or another placement." : "They count from 0.");
    is_missing[number] = true;
  }
  std::vector<EventId> kept;
  for (StepPlan::Hop& hop : plan.hops) {
    const auto first = static_cast<std::uint32_t>(kept.size());
    for (std::uint32_t i = hop.first_wait; i < hop.first_wait + hop.wait_count; ++i)
      if (!is_missing[i]) kept.push_back(plan.waits[i]);
    hop.first_wait = first;
    hop.wait_count = static_cast<std::uint32_t>(kept.size()) - first;
    if (hop.wait_count == 0) hop.flags &= static_cast<std::uint8_t>(~StepPlan::kWaits);
  }
  plan.waits = std::move(kept);
}

}  // namespace

StepPlan make_plan(const Step& step, const Placement& placement, const SessionOptions& options) {
  StepPlan plan = options.mode == SubmitMode::graph ? make_graph_plan(step, placement)
                                                    : make_plan(step, placement, options.is_pipelined);
  if (!options.disturbance.missing_waits.empty()) leave_out(plan, options.disturbance.missing_waits);
  return plan;
}

void reject_delays(const SessionOptions& options) {
  if (!options.disturbance.delays.empty())
    reject("this device cannot hold single commands up", "Use --device cpu or --device sim.");
}

void check_delays(const Step& step, const SessionOptions& options) {
  std::vector<bool> is_delayed(step.commands().size(), false);
  for (const Disturbance::Delay& delay : options.disturbance.delays) {
    if (options.mode == SubmitMode::graph)
      reject("commands of a graph cannot be held up one by one", "Use --submit inline.");
    if (delay.command >= is_delayed.size() || delay.until.value_or(0) >= is_delayed.size())
      reject(fmt::format("command {} cannot be held up: the step has {}", delay.command, is_delayed.size()));
    if (delay.ns < 0 || is_delayed[delay.command])
      reject(fmt::format("command {} cannot be held up: a delay is at least 0 ns, and there is one per command",
                         delay.command));
    is_delayed[delay.command] = true;
  }
}

StepPlan make_plan(const Step& step, const Placement& placement, bool is_pipelined) {
  const CommandId whole[] = {0, static_cast<CommandId>(step.commands().size())};
  return make(step, placement, is_pipelined, whole);
}

StepPlan make_graph_plan(const Step& step, const Placement& placement) {
  return make(step, placement, false, step.segments());
}

}  // namespace weir
