#include "device/gpu/graph.h"

#include <numeric>
#include <vector>

#include "device/gpu/queue.h"

namespace weir {
namespace {

// Ties every stream to the first one, on which the capture runs: forked before a stream's first command, joined after
// its last.
class CaptureQueue : public LaunchQueue {
 public:
  CaptureQueue(const LaunchQueue& queue, GpuEvent fork, GpuEvent join) noexcept
      : LaunchQueue(queue), fork_(fork), join_(join) {}
  void mark_first(StreamId id) noexcept {
    if (id != 0) note(api().stream_wait(stream(id), fork_, 0));
  }
  void mark_last(StreamId id) noexcept {
    if (id != 0) is_open_[id] = true;
  }
  // Makes the first stream wait for all others. Only at the end: earlier, its own later commands would wait too.
  void join_all() noexcept {
    for (StreamId id = 1; id < kMaxStreams; ++id) {
      if (!is_open_[id]) continue;
      note(api().event_record(join_, stream(id)));
      note(api().stream_wait(stream(0), join_, 0));
    }
  }

 private:
  GpuEvent fork_, join_;
  bool is_open_[kMaxStreams] = {};
};

}  // namespace

StepGraph::StepGraph(PrimaryContext& context, const StepPlan& plan, CommandId begin, CommandId end,
                     const GpuCommands& commands, std::span<const GpuStream> streams, std::span<const GpuEvent> events)
    : api_(context.api()), stream_(streams[0]) {
  if (api_.capture_begin == nullptr)
    reject_setting("submit", "graph", fmt::format("the driver of {} cannot capture graphs", context.device_name()),
                   "Use --submit inline or threads.");
  const GpuEventOwner fork = make_event(api_, kGpuEventNoTiming), join = make_event(api_, kGpuEventNoTiming);
  std::vector<CommandId> all(end - begin);
  std::iota(all.begin(), all.end(), begin);

  ErrorLatch latch;
  CaptureQueue queue(LaunchQueue(api_, commands, streams.data(), events.data(), latch), fork.get(), join.get());
  // Relaxed: a BLAS library may allocate or load code on its first call, which the other modes forbid.
  check(api_, api_.capture_begin(stream_, kGpuCaptureRelaxed), "starting to capture a graph");
  if (const int result = api_.event_record(fork.get(), stream_); result != 0) latch.set(result, ErrorLatch::kNoCommand);
  walk(plan, all, queue);
  queue.join_all();

  GpuGraph captured = nullptr;
  const int result = api_.capture_end(stream_, &captured);
  const GpuGraphOwner graph(captured, {&api_});
  // The first error is more informative than the capture that it broke.
  if (const auto latched = latch.take(); latched.result != 0)
    fail(fmt::format("{}: capturing the step as a graph failed: {}", context.device_name(),
                     commands.describe(latched.result)));
  check(api_, result, "ending the capture of a graph");
  GpuGraphExec exec = nullptr;
  check(api_, api_.graph_instantiate(&exec, graph.get(), 0), "instantiating a graph");
  exec_ = GpuGraphExecOwner(exec, {&api_});
  if (api_.graph_upload != nullptr) check(api_, api_.graph_upload(exec, stream_), "uploading a graph");
  check(api_, api_.stream_synchronize(stream_), "uploading a graph");
}

}  // namespace weir
