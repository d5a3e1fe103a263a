#include "device/opencl/session.h"

#if WEIR_HAVE_OPENCL
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "device/failure.h"

namespace weir {

OpenclSession::Queues::Queues(const OpenclContext& context, const Step& step, const Placement& placement,
                              const SessionOptions& options) {
  // Only if times are needed: drivers then take them for every command.
  cl_command_queue_properties properties =
      options.is_traced || options.marks_iterations ? CL_QUEUE_PROFILING_ENABLE : 0;
  const bool has_graphs = options.mode == SubmitMode::graph;
  if (has_graphs) properties |= opencl_graph_queue(context);
  std::vector<int> urgency(has_graphs ? 1 : static_cast<std::size_t>(placement.stream_count), INT8_MIN);
  for (CommandId id = 0; id < step.commands().size(); ++id) {
    int& highest = urgency[placement.stream_of[id] % urgency.size()];
    highest = std::max<int>(highest, step.commands()[id].priority);
  }
  for (const int value : urgency) {
    owners.push_back(context.make_queue(properties, value == INT8_MIN ? 0 : value));
    handles.push_back(owners.back().get());
  }
}

OpenclSession::OpenclSession(std::shared_ptr<OpenclContext> context, const Step& step, const Placement& placement,
                             const SessionOptions& options)
    : context_(std::move(context)),
      api_(context_->api()),
      step_(step),
      placement_(placement),
      options_(options),
      plan_(make_plan(step, placement, options)),
      buffers_(*context_, step),
      queues_(*context_, step, placement, options),
      service_(context_->make_queue(0)),
      hosts_(make_host_calls()),
      // A library cannot be recorded in a command buffer.
      commands_(*context_, step, placement, buffers_, queues_.handles, has_graphs() ? nullptr : OpenclBlas::open(),
                hosts_.get()),
      events_(api_, plan_),
      iterations_(api_, queues_.handles.size(), max_in_flight(), options.marks_iterations) {
  reject_delays(options);
  buffers_.initialise(service_.get());
  commands_.warm_up(service_.get());
  buffers_.initialise(service_.get());
  if (has_graphs()) {
    record_segments();
  } else if (options.is_traced) {
    trace_.emplace(*context_, step.commands().size(), options.trace_iterations);
    if (hosts_) hosts_->note_runs(trace_->slots());
  }
}

OpenclSession::~OpenclSession() {
  // Running commands use memory that is freed now. After an error the driver may never call back.
  if (is_broken_ && hosts_) hosts_->abandon();
  for (cl_command_queue queue : queues_.handles) api_.finish(queue);
}

std::unique_ptr<OpenclHostCalls> OpenclSession::make_host_calls() const {
  bool has_any = false;
  for (CommandId id = 0; id < step_.commands().size() && !has_any; ++id)
    has_any = OpenclHostCalls::does(step_, buffers_, id);
  if (!has_any) return nullptr;
  return std::make_unique<OpenclHostCalls>(*context_, step_, buffers_, max_in_flight());
}

void OpenclSession::record_segments() {
  if (const Capability graphs = opencl_graphs(*context_); !graphs)
    reject_setting("submit", "graph", fmt::format("{}: {}", context_->name(), graphs.reason),
                   "Use --submit inline or threads.");
  // A command buffer cannot hold host commands, so each of those splits it; the pieces run one after the other.
  const auto begins = step_.segments();
  segments_.reserve(begins.size() + 2 * step_.commands().size());
  const auto record = [&](CommandId begin, CommandId end) {
    if (begin < end)
      segments_.emplace_back().graph.emplace(*context_, plan_, begin, end, commands_, queues_.handles[0]);
  };
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    CommandId begin = begins[i];
    for (CommandId id = begin; id < begins[i + 1]; ++id) {
      if (!OpenclHostCalls::does(step_, buffers_, id)) continue;
      record(begin, id);
      segments_.emplace_back().alone = id;
      begin = id + 1;
    }
    record(begin, begins[i + 1]);
  }
}

void OpenclSession::begin_iteration() noexcept {
  iterations_.begin();
  events_.begin();
  if (trace_) trace_->begin();
}

void OpenclSession::submit(std::span<const CommandId> commands) noexcept {
  if (has_graphs()) return submit_graphs();
  OpenclQueue queue(api_, commands_, plan_, events_, iterations_, trace_ ? &*trace_ : nullptr, latch_);
  walk(plan_, commands, queue);
  // Other threads may wait for these commands, and a driver may hold them back until a flush.
  for (std::size_t i = 0; i < queues_.handles.size(); ++i)
    if (queue.touched()[i])
      if (const cl_int result = api_.flush(queues_.handles[i]); result != CL_SUCCESS) [[unlikely]]
        latch_.set(result, ErrorLatch::kNoCommand);
}

void OpenclSession::submit_graphs() noexcept {
  cl_command_queue queue = queues_.handles[0];
  const auto note = [this](int result) {
    if (result != CL_SUCCESS) [[unlikely]]
      latch_.set(result, ErrorLatch::kNoCommand);
  };
  const auto mark = [&] {
    const cl_event last = last_segment_.get();
    cl_event marker = nullptr;
    note(api_.enqueue_marker(queue, last != nullptr, last != nullptr ? &last : nullptr, &marker));
    return marker;
  };
  // A command buffer's event shows when its last command ended, not when the first one started (PoCL 3.1).
  if (iterations_.is_marked()) iterations_.start(0, mark(), true);
  for (Segment& segment : segments_) {
    const cl_event last = last_segment_.get();
    const cl_uint waits = last != nullptr;
    cl_event ended = nullptr;
    note(segment.graph ? segment.graph->launch(waits, &last, &ended)
                       : hosts_->launch(segment.alone, queue, false, waits, &last, nullptr, &ended));
    if (ended != nullptr) last_segment_ = OpenclEventOwner(ended, {&api_});
  }
  if (iterations_.is_marked()) {
    iterations_.end(0, mark());
  } else if (last_segment_ && api_.retain_event(last_segment_.get()) == CL_SUCCESS) {
    iterations_.end(0, last_segment_.get());
  }
  note(api_.flush(queue));
}

void OpenclSession::finish() {
  cl_int result = CL_SUCCESS;
  for (cl_command_queue queue : queues_.handles)
    if (const cl_int ended = api_.finish(queue); result == CL_SUCCESS) result = ended;
  if (const cl_int failed = iterations_.drain(); result == CL_SUCCESS) result = failed;
  const ErrorLatch::Latched latched = latch_.take();
  is_broken_ = is_broken_ || latched.result != CL_SUCCESS || result != CL_SUCCESS;
  throw_failure({.device = context_->name(),
                 .step = step_,
                 .placement = placement_,
                 .submitting = has_graphs() ? "launching the step's command buffers" : "submitting the step",
                 .describe = [this](int failed) { return commands_.describe(failed); },
                 .hint = opencl_lost_hint,
                 .latched = latched,
                 .result = result,
                 .thrown = hosts_ ? hosts_->take_failure() : nullptr});
}

Timeline OpenclSession::timeline() {
  if (trace_) return trace_->timeline(step_, placement_, commands_, hosts_.get());
  Timeline timeline;
  timeline.source =
      has_graphs() ? "none: a command buffer has one event for all its commands" : "none: this pass was not traced";
  return timeline;
}

std::span<std::byte> OpenclSession::host_memory(BufferId buffer) {
  if (buffers_.host(buffer) == nullptr) fail("host_memory() of a buffer on the device");
  return {buffers_.host(buffer), step_.buffers()[buffer].size_bytes()};
}

void OpenclSession::poll(StreamId stream) noexcept { api_.flush(queues_.handles[stream % queues_.handles.size()]); }

MemoryUse OpenclSession::memory() const {
  MemoryUse use;
  use.allocated_bytes = step_.size_bytes(Place::device);
  use.reason = "OpenCL does not tell how much memory is free";
  return use;
}

}  // namespace weir
#endif
