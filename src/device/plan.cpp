#include "device/plan.h"

#include <algorithm>
#include <limits>

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

}  // namespace

StepPlan make_plan(const Step& step, const Placement& placement, bool is_pipelined) {
  const CommandId whole[] = {0, static_cast<CommandId>(step.commands().size())};
  return make(step, placement, is_pipelined, whole);
}

StepPlan make_graph_plan(const Step& step, const Placement& placement) {
  return make(step, placement, false, step.segments());
}

}  // namespace weir
