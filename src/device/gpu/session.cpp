#include "device/gpu/session.h"

#include <algorithm>
#include <exception>

#include "device/failure.h"

namespace weir {
namespace {

std::shared_ptr<PrimaryContext> entered(std::shared_ptr<PrimaryContext> context) {
  context->enter();
  return context;
}

}  // namespace

GpuSession::Events::Events(const GpuApi& api, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    owners.push_back(make_event(api, kGpuEventNoTiming));
    handles.push_back(owners.back().get());
  }
}

GpuSession::GpuSession(std::shared_ptr<PrimaryContext> context, const GpuFacts& facts, const Step& step,
                       const Placement& placement, const SessionOptions& options, const GpuConfinement& confinement,
                       Communicator* communicator, bool stages_collectives)
    : context_(entered(std::move(context))),
      step_(step),
      placement_(placement),
      options_(options),
      plan_(make_plan(step, placement, options)),
      free_before_(free_memory()),
      buffers_(*context_, step, StreamBlas::workspace_bytes(facts, step, placement)),
      streams_(*context_, facts, step, placement, confinement),
      service_(context_->service()),
      events_(context_->api(), plan_.event_count),
      blas_(*context_, facts, step, placement, streams_.handles),
      comms_(*context_, step, placement, communicator, stages_collectives),
      staged_(make_staged(communicator)),
      host_threads_(make_host_threads()),
      commands_(*context_, step, placement, buffers_, streams_.handles, blas_, comms_, staged_.get(),
                host_threads_.get()),
      clock_(context_->api(), service_),
      iterations_(context_->api(), clock_,
                  !options.marks_iterations ? 0
                  : has_graphs()            ? 1
                                            : streams_.handles.size()) {
  reject_delays(options);
  if (options.follows_progress) marks_.emplace(context_->api(), has_graphs() ? 1 : streams_.handles.size());
  commands_.warm_up();
  if (options.mode == SubmitMode::eager) commands_.record_products();
  buffers_.initialise(service_);
  if (has_graphs()) {
    capture_segments();
  } else if (options.is_traced) {
    start_trace();
  }
  // If other processes free memory meanwhile, the difference means nothing.
  if (const std::size_t free_after = free_memory(); free_after <= free_before_)
    reserved_bytes_ = free_before_ - free_after;
}

GpuSession::~GpuSession() {
  context_->bind();
  // Running commands use memory that is freed now. After an error this returns at once.
  bool is_broken = false;
  if (staged_ != nullptr && std::uncaught_exceptions() > 0) staged_->give_up();
  for (GpuStream stream : streams_.handles) is_broken |= context_->api().stream_synchronize(stream) != 0;
  if (is_broken) comms_.abandon();
}

std::unique_ptr<HostThreads> GpuSession::make_host_threads() const {
  const auto commands = step_.commands();
  if (std::none_of(commands.begin(), commands.end(), [](const Command& c) { return c.kind == CommandKind::host; }))
    return nullptr;
  if (context_->api().launch_host == nullptr)
    reject(fmt::format("{}: this workload runs host functions in streams, which the driver cannot do",
                       context_->device_name()),
           "Update the driver, or use --device cpu.");
  return std::make_unique<HostThreads>(HostThreads::default_count());
}

std::unique_ptr<StagedCollectives> GpuSession::make_staged(Communicator* communicator) const {
  if (comms_.staged_reason().empty()) return nullptr;
  if (has_graphs())
    reject_setting(
        "submit", "graph",
        fmt::format("collectives are staged through host memory, which a graph cannot be: {}", comms_.staged_reason()),
        "Use --submit inline.");
  return std::make_unique<StagedCollectives>(*context_, step_, placement_, buffers_, *communicator);
}

void GpuSession::capture_segments() {
  const auto begins = step_.segments();
  segments_.reserve(begins.size());
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    Segment& segment = segments_.emplace_back();
    // A host function alone needs no graph: the stream already orders it between the graphs.
    if (begins[i + 1] - begins[i] == 1 && step_.commands()[begins[i]].kind == CommandKind::host) {
      segment.alone = commands_.records()[begins[i]];
      segment.alone.stream = streams_.handles[0];
    } else {
      segment.graph.emplace(*context_, plan_, begins[i], begins[i + 1], commands_, streams_.handles, events_.handles);
    }
  }
}

void GpuSession::start_trace() {
  if (is_traced_from_outside()) {
    trace_.emplace(context_->api(), clock_, commands_, step_.commands().size(), options_.trace_iterations);
    return;
  }
  if (options_.traces_by_events) {
    no_activity_ = "events were asked for";
  } else {
    activity_ = ActivityTrace::start(*context_, step_, placement_, streams_.handles, commands_,
                                     options_.trace_iterations, &no_activity_);
  }
  if (activity_ == nullptr) trace_.emplace(context_->api(), clock_, step_.commands().size(), options_.trace_iterations);
}

std::size_t GpuSession::free_memory() const {
  std::size_t free = 0, total = 0;
  check(context_->api(), context_->api().memory_info(&free, &total), "asking for free memory");
  return free;
}

void GpuSession::begin_iteration() noexcept {
  if (const int result = context_->bind(); result != 0) return latch_.set(result, ErrorLatch::kNoCommand);
  iterations_.begin();
  if (activity_) activity_->begin();
  if (trace_) trace_->begin();
}

void GpuSession::submit(std::span<const CommandId> commands) noexcept {
  if (const int result = context_->bind(); result != 0) [[unlikely]]
    return latch_.set(result, ErrorLatch::kNoCommand);
  const auto note = [this](int result) {
    if (result != 0) [[unlikely]]
      latch_.set(result, ErrorLatch::kNoCommand);
  };
  if (has_graphs()) {
    note(iterations_.start(0, streams_.handles[0]));
    for (const Segment& segment : segments_) {
      note(segment.graph ? segment.graph->launch() : commands_.launch_other(segment.alone));
      if (marks_) note(marks_->mark(0, streams_.handles[0]));
    }
    note(iterations_.end(0, streams_.handles[0]));
    return;
  }
  const LaunchQueue launches(context_->api(), commands_, streams_.handles.data(), events_.handles.data(), latch_);
  EagerQueue queue(launches, iterations_);
  if (activity_) [[unlikely]] {
    ActivityQueue traced(queue, *activity_);
    walk_marked(commands, traced);
  } else if (trace_) [[unlikely]] {
    TracedQueue traced(queue, *trace_);
    walk_marked(commands, traced);
  } else {
    walk_marked(commands, queue);
  }
}

template <class Queue>
void GpuSession::walk_marked(std::span<const CommandId> commands, Queue& queue) noexcept {
  if (marks_) [[unlikely]] {
    MarkedQueue<Queue> marked(queue, *marks_);
    walk(plan_, commands, marked);
  } else {
    walk(plan_, commands, queue);
  }
}

void GpuSession::finish() {
  const GpuApi& api = context_->api();
  context_->enter();
  // One call for all streams; a graph or a single stream need not wait for others in the context.
  const bool uses_one = has_graphs() || streams_.handles.size() == 1;
  const int result = uses_one ? api.stream_synchronize(streams_.handles[0]) : api.synchronize();
  if (marks_ && result == 0) marks_->note_all_ended();
  std::exception_ptr thrown = host_threads_ ? host_threads_->take_failure() : nullptr;
  const bool is_collective = staged_ != nullptr && thrown == nullptr;
  throw_failure({.device = context_->device_name(),
                 .step = step_,
                 .placement = placement_,
                 .submitting = has_graphs() ? "launching the step's graph" : "submitting the step",
                 .describe = [this](int result) { return commands_.describe(result); },
                 .hint = [&](int result) { return lost_hint(api, result); },
                 .latched = latch_.take(),
                 .result = result,
                 .thrown = is_collective ? staged_->failure() : thrown,
                 .thrower = is_collective ? "a collective" : "a host function"});
}

std::vector<IterationSpan> GpuSession::take_spans() {
  context_->enter();
  return iterations_.take();
}

Timeline GpuSession::timeline() {
  Timeline timeline;
  if (activity_) {
    context_->enter();
    return activity_->timeline();
  }
  if (trace_) {
    context_->enter();
    timeline = trace_->timeline(step_, placement_);
    if (!no_activity_.empty()) timeline.source += fmt::format(" (no activity records: {})", no_activity_);
    return timeline;
  }
  timeline.source = has_graphs() ? "none: events cannot be put around the commands of a graph without changing it, and "
                                   "activity records name the nodes of its executable copy, not the commands"
                                 : "none: this pass was not traced";
  return timeline;
}

void GpuSession::reset() {
  context_->enter();
  buffers_.initialise(service_);
}

void GpuSession::read(BufferId buffer, std::span<std::byte> bytes) {
  context_->enter();
  buffers_.read(buffer, bytes, service_);
}

std::span<std::byte> GpuSession::host_memory(BufferId buffer) {
  if (step_.buffers()[buffer].place != Place::host) fail("host_memory() of a buffer on the device");
  return {buffers_.address(buffer), step_.buffers()[buffer].size_bytes()};
}

void GpuSession::poll(StreamId stream) noexcept {
  if (context_->api().stream_query != nullptr) context_->api().stream_query(streams_.handles[stream]);
}

std::vector<StreamProgress> GpuSession::progress() noexcept {
  if (!marks_) return {};
  std::vector<StreamProgress> streams(streams_.handles.size());
  if (!has_graphs()) {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const StreamMarks::Counts counts = marks_->counts(i);
      streams[i] = {counts.submitted, counts.ended, marks_->is_exact()};
    }
    return streams;
  }
  // A graph reports only when all of it has ended, not its commands.
  const StreamMarks::Counts counts = marks_->counts(0);
  const std::size_t segments = segments_.size();
  for (CommandId id = 0; id < step_.commands().size(); ++id) {
    const auto begins = step_.segments();
    const auto own =
        static_cast<std::uint64_t>(std::upper_bound(begins.begin(), begins.end(), id) - begins.begin()) - 1;
    StreamProgress& stream = streams[placement_.stream_of[id]];
    // The number of marks that belong to this command's segment.
    stream.submitted += (counts.submitted + segments - 1 - own) / segments;
    stream.ended += (counts.ended + segments - 1 - own) / segments;
  }
  return streams;
}

std::optional<std::uint64_t> GpuSession::ended(StreamId stream) noexcept {
  if (!marks_ || !marks_->is_exact() || has_graphs()) return std::nullopt;
  if (is_lost_ || latch_.is_set()) [[unlikely]]
    return kAllEnded;
  return marks_->counts(stream).ended;
}

void GpuSession::relax(int spins) noexcept {
  Session::relax(spins);
  // After a kernel crash no marks arrive, and only the driver knows: query it about every millisecond.
  constexpr int kAskEvery = 4096;
  constexpr int kNotReady = 600;  // same value for CUDA_ERROR_NOT_READY and hipErrorNotReady
  const auto ask = context_->api().stream_query;
  if (spins % kAskEvery != kAskEvery - 1 || ask == nullptr) return;
  for (GpuStream stream : streams_.handles)
    if (const int result = ask(stream); result != 0 && result != kNotReady) is_lost_ = true;
}

std::optional<Footprint> GpuSession::footprint(CommandId command) const {
  context_->enter();
  return commands_.footprint(command);
}

MemoryUse GpuSession::memory() const {
  MemoryUse use;
  use.allocated_bytes = step_.size_bytes(Place::device);
  if (reserved_bytes_) {
    use.reserved_bytes = reserved_bytes_;
    use.peak_bytes = reserved_bytes_;
  } else {
    use.reason = "free device memory grew while the session was prepared: somebody else uses this device";
  }
  return use;
}

}  // namespace weir
