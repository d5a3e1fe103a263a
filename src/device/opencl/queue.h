// The hot end: what the loop of plan.h calls for each command on an OpenCL device. No allocation, no lock; errors are
// latched.
#pragma once

#include "device/opencl/commands.h"

#if WEIR_HAVE_OPENCL
#include <bitset>
#include <vector>

#include "device/error_latch.h"
#include "device/opencl/spans.h"
#include "device/opencl/trace.h"
#include "device/plan.h"

namespace weir {

// The plan's events in this iteration and the previous one. A thread may record an event of this iteration while
// another still reads that of the previous one, so there are two sets.
class OpenclEvents {
 public:
  OpenclEvents(const OpenclApi& api, const StepPlan& plan) : api_(api), owner_(plan.event_count) {
    for (auto& set : sets_) set.resize(plan.event_count, nullptr);
    for (CommandId id = 0; id < plan.hops.size(); ++id)
      if ((plan.hops[id].flags & StepPlan::kRecords) != 0) owner_[plan.hops[id].event] = id;
  }
  ~OpenclEvents() {
    begin();
    begin();
  }
  OpenclEvents(const OpenclEvents&) = delete;
  OpenclEvents& operator=(const OpenclEvents&) = delete;

  // Opens the next iteration and drops the events of the one before the last.
  void begin() noexcept {
    now_ ^= 1;
    for (cl_event& event : sets_[now_]) {
      if (event != nullptr) api_.release_event(event);
      event = nullptr;
    }
  }
  // Takes ownership of the event.
  void record(EventId id, cl_event event) noexcept { sets_[now_][id] = event; }
  // The event that `waiter` must wait for; null if it was not recorded: as in CUDA, there is nothing to wait for. An
  // event of a command later in the step can only mean the previous iteration.
  cl_event find(EventId id, CommandId waiter) const noexcept {
    return sets_[owner_[id] < waiter ? now_ : now_ ^ 1][id];
  }

 private:
  const OpenclApi& api_;
  std::vector<CommandId> owner_;
  std::vector<cl_event> sets_[2];
  int now_ = 0;
};

// Lives on the submitting thread's stack for one batch. OpenCL commands carry their waits and their event, so launch()
// does everything that the plan asks of a command.
class OpenclQueue {
 public:
  OpenclQueue(const OpenclApi& api, const OpenclCommands& commands, const StepPlan& plan, OpenclEvents& events,
              OpenclIterations& iterations, OpenclTrace* trace, ErrorLatch& latch) noexcept
      : api_(api),
        commands_(commands),
        plan_(plan),
        events_(events),
        iterations_(iterations),
        trace_(trace),
        latch_(latch) {}

  void prefetch(CommandId id) const noexcept { commands_.prefetch(id); }
  void launch(CommandId id, StreamId stream) noexcept {
    touched_[stream] = true;
    const StepPlan::Hop& hop = plan_.hops[id];
    if (hop.flags == 0 && trace_ == nullptr) [[likely]]
      return note(commands_.launch(id, 0, nullptr, nullptr, nullptr), id);
    launch_with_events(id, hop);
  }
  void wait(EventId, StreamId) noexcept {}
  void record(EventId, StreamId) noexcept {}
  void mark_first(StreamId) noexcept {}
  void mark_last(StreamId) noexcept {}

  const std::bitset<kMaxStreams>& touched() const noexcept { return touched_; }

 private:
  void note(int result, CommandId id) noexcept {
    if (result != CL_SUCCESS) [[unlikely]]
      latch_.set(result, id);
  }
  // Adds an owner of the event; null stays null.
  cl_event share(cl_event event) const noexcept {
    if (event != nullptr) api_.retain_event(event);
    return event;
  }

  void launch_with_events(CommandId id, const StepPlan::Hop& hop) noexcept {
    // At most one of this and one of the previous iteration for every other stream.
    cl_event waits[2 * kMaxStreams];
    cl_uint wait_count = 0;
    for (std::uint32_t i = 0; i < hop.wait_count; ++i) {
      waits[wait_count] = events_.find(plan_.waits[hop.first_wait + i], id);
      if (waits[wait_count] != nullptr) ++wait_count;
    }
    const bool is_recorded = (hop.flags & StepPlan::kRecords) != 0, is_last = (hop.flags & StepPlan::kLast) != 0;
    const bool is_first = (hop.flags & StepPlan::kFirst) != 0 && iterations_.is_marked();
    const bool has_event = is_recorded || is_last || is_first || trace_ != nullptr;
    const bool has_begin = (is_first || trace_ != nullptr) && commands_.begins_by_marker(id);
    cl_event begin = nullptr, end = nullptr;
    if (trace_ != nullptr) trace_->submitted(id);
    const int result =
        commands_.launch(id, wait_count, waits, has_begin ? &begin : nullptr, has_event ? &end : nullptr);
    note(result, id);
    if (trace_ != nullptr) trace_->accepted(id, share(begin), share(end));
    if (is_first) iterations_.start(hop.stream, share(has_begin ? begin : end), has_begin);
    if (is_last) iterations_.end(hop.stream, share(end));
    if (is_recorded) events_.record(hop.event, share(end));
    if (begin != nullptr) api_.release_event(begin);
    if (end != nullptr) api_.release_event(end);
  }

  const OpenclApi& api_;
  const OpenclCommands& commands_;
  const StepPlan& plan_;
  OpenclEvents& events_;
  OpenclIterations& iterations_;
  OpenclTrace* trace_;
  ErrorLatch& latch_;
  std::bitset<kMaxStreams> touched_;
};

}  // namespace weir
#endif
