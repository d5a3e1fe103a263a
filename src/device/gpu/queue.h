// The hot end: what the loop of plan.h calls for each command on a GPU. No allocation, no lock; errors are latched.
#pragma once

#include "device/gpu/activity_trace.h"
#include "device/gpu/commands.h"
#include "device/gpu/marks.h"
#include "device/gpu/spans.h"
#include "device/gpu/trace.h"
#include "device/plan.h"

namespace weir {

// Lives on the submitting thread's stack for one batch, so that the loop's pointers stay in registers across driver
// calls, which the compiler must assume to change all memory that they can reach.
class LaunchQueue {
 public:
  LaunchQueue(const GpuApi& api, const GpuCommands& commands, const GpuStream* streams, const GpuEvent* events,
              ErrorLatch& latch) noexcept
      : launch_(api.launch),
        records_(commands.records()),
        api_(api),
        commands_(commands),
        streams_(streams),
        events_(events),
        latch_(latch) {}

  void prefetch(CommandId id) const noexcept { __builtin_prefetch(&records_[id]); }
  void launch(CommandId id, StreamId) noexcept {
    const LaunchRecord& record = records_[id];
    int result = 0;
    if (record.function != nullptr) [[likely]] {
      void* parameters[] = {const_cast<KernelArguments*>(&record.arguments)};
      result = launch_(record.function, record.grid, 1, 1, record.block, 1, 1, 0, record.stream, parameters, nullptr);
    } else {
      result = commands_.launch_other(record);
    }
    if (result != 0) [[unlikely]]
      latch_.set(result, id);
  }
  void record(EventId event, StreamId stream) noexcept { note(api_.event_record(events_[event], streams_[stream])); }
  void wait(EventId event, StreamId stream) noexcept { note(api_.stream_wait(streams_[stream], events_[event], 0)); }

 protected:
  void note(int result) noexcept {
    if (result != 0) [[unlikely]]
      latch_.set(result, ErrorLatch::kNoCommand);
  }
  GpuStream stream(StreamId id) const noexcept { return streams_[id]; }
  const GpuApi& api() const noexcept { return api_; }

 private:
  decltype(GpuApi::launch) launch_;
  const LaunchRecord* records_;
  const GpuApi& api_;
  const GpuCommands& commands_;
  const GpuStream* streams_;
  const GpuEvent* events_;
  ErrorLatch& latch_;
};

// Eager submission: iterations are timed by two events per stream.
class EagerQueue : public LaunchQueue {
 public:
  EagerQueue(const LaunchQueue& queue, IterationEvents& iterations) noexcept
      : LaunchQueue(queue), iterations_(iterations) {}
  void mark_first(StreamId id) noexcept { note(iterations_.start(id, stream(id))); }
  void mark_last(StreamId id) noexcept { note(iterations_.end(id, stream(id))); }

 private:
  IterationEvents& iterations_;
};

// The traced pass with a profiler: commands are submitted as usual.
class ActivityQueue : public EagerQueue {
 public:
  ActivityQueue(const EagerQueue& queue, ActivityTrace& trace) noexcept : EagerQueue(queue), trace_(trace) {}
  void launch(CommandId id, StreamId on) noexcept {
    trace_.note(id, on);
    EagerQueue::launch(id, on);
    trace_.accepted(id);
  }

 private:
  ActivityTrace& trace_;
};

// The traced pass without a profiler: two more events around every command.
class TracedQueue : public EagerQueue {
 public:
  TracedQueue(const EagerQueue& queue, CommandEvents& trace) noexcept : EagerQueue(queue), trace_(trace) {}
  void launch(CommandId id, StreamId on) noexcept {
    note(trace_.start(id, stream(on)));
    EagerQueue::launch(id, on);
    trace_.accepted(id);
    note(trace_.end(id, stream(on)));
  }

 private:
  CommandEvents& trace_;
};

// Any of the above, with a mark after every command: SessionOptions::follows_progress.
template <class Queue>
class MarkedQueue : public Queue {
 public:
  MarkedQueue(const Queue& queue, StreamMarks& marks) noexcept : Queue(queue), marks_(marks) {}
  void launch(CommandId id, StreamId on) noexcept {
    Queue::launch(id, on);
    this->note(marks_.mark(on, this->stream(on)));
  }

 private:
  StreamMarks& marks_;
};

}  // namespace weir
