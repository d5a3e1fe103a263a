#include "device/sim/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "device/sim/cost.h"

namespace weir::sim {
namespace {

constexpr const char* kStuck = "the simulated device is stuck: commands wait for something that does not happen";

}  // namespace

SimSession::SimSession(std::shared_ptr<Shared> shared, const Step& step, const Placement& placement,
                       const SessionOptions& options)
    : shared_(std::move(shared)),
      step_(step),
      plan_(make_plan(step, placement, options)),
      mode_(options.mode),
      memory_(step.buffers().size()) {
  const std::size_t count = step.commands().size();
  const CostModel model(shared_->profile);
  client_.works.reserve(count);
  for (CommandId id = 0; id < count; ++id) client_.works.push_back(model.work_of(step, id));
  check_delays(step, options);
  for (const Disturbance::Delay& delay : options.disturbance.delays) {
    client_.works[delay.command].delay_ns = delay.ns;
    client_.works[delay.command].delayed_iteration = delay.iteration;
  }
  allocate();
  client_.streams.resize(static_cast<std::size_t>(placement.stream_count));
  client_.events.resize(plan_.event_count);
  if (mode_ == SubmitMode::graph) {
    const auto segments = step.segments();
    for (std::size_t i = 0; i + 1 < segments.size(); ++i)
      client_.graphs.push_back(record_graph(plan_, segments[i], segments[i + 1]));
    client_.missing.resize(count);
    if (shared_->profile.graph_queues != GraphQueues::none) divide_graphs();
  }
  if (options.is_traced && options.trace_iterations > 0) {
    client_.traced_iterations = static_cast<std::uint32_t>(options.trace_iterations);
    client_.spans.resize(client_.traced_iterations * count);
    for (std::size_t i = 0; i < client_.spans.size(); ++i)
      client_.spans[i] = untimed_span(step, placement, static_cast<CommandId>(i % count), i / count);
  }
  if (options.host_threads > 1 && mode_ == SubmitMode::eager) {
    threads_.resize(static_cast<std::size_t>(options.host_threads));
    divide(placement);
  }
  shared_->machine.open(client_);
}

SimSession::~SimSession() {
  catch_up();
  drain();
  shared_->machine.close(client_);
}

// Device buffers have no memory. Host buffers get memory only if probes write to them, or later in host_memory().
void SimSession::allocate() {
  for (CommandId id = 0; id < step_.commands().size(); ++id) {
    const Command& command = step_.commands()[id];
    if (command.kind != CommandKind::kernel || !kernel(command.kernel).is_probe) continue;
    Work& work = client_.works[id];
    const auto accesses = step_.accesses(id);
    const auto at = [&](const Access& access) {
      return reinterpret_cast<std::int32_t*>(host_memory(access.buffer).data() + access.offset_bytes);
    };
    if (kernel(command.kernel).lasts == Lasts::by_units) {
      work.flag = at(accesses[0]);
      work.record = reinterpret_cast<std::int64_t*>(at(accesses[1]));
      const bool is_counted = step_.buffers()[accesses[3].buffer].place == Place::host && work.blocks == work.units;
      if (is_counted) work.done = at(accesses[3]);
      if (work.is_stoppable) client_.holds.push_back(id);
      continue;
    }
    work.moments = at(accesses.back());
    if (!work.is_hold) continue;
    work.flag = at(accesses.front());
    client_.holds.push_back(id);
  }
}

void SimSession::divide_graphs() {
  const auto segments = step_.segments();
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    auto& packets = client_.graph_packets.emplace_back();
    for (CommandId id = segments[i]; id < segments[i + 1]; ++id) {
      const StepPlan::Hop& hop = plan_.hops[id];
      const Unit unit = client_.works[id].unit;
      for (std::uint32_t k = 0; k < hop.wait_count; ++k)
        packets.push_back({GraphPacket::Kind::wait, plan_.waits[hop.first_wait + k], hop.stream, unit});
      packets.push_back({GraphPacket::Kind::launch, id, hop.stream, unit});
      if ((hop.flags & StepPlan::kRecords) != 0)
        packets.push_back({GraphPacket::Kind::record, hop.event, hop.stream, unit});
    }
  }
}

void SimSession::divide(const Placement& placement) {
  const std::size_t count = step_.commands().size();
  const auto thread_of = [&](CommandId id) { return placement.stream_of[id] % threads_.size(); };
  is_marked_.assign(count, 0);
  submitted_ns_.assign(count, kNoTime);
  foreign_predecessors_.resize(count);
  for (CommandId id = 0; id < count; ++id) {
    threads_[thread_of(id)].commands.push_back(id);
    for (const CommandId before : step_.predecessors(id))
      if (thread_of(before) != thread_of(id)) foreign_predecessors_[id].push_back(before);
  }
}

std::int64_t SimSession::launch_cost(const Work& work) const noexcept {
  const auto& host = shared_->profile.host;
  switch (work.unit) {
    case Unit::kernel:
      return host.launch_ns;
    case Unit::host:
      return host.host_function_ns;
    case Unit::link:
      return host.collective_ns;
    default:
      return host.copy_ns;
  }
}

bool SimSession::submit_command(CommandId id, HostThread& thread) {
  Machine& machine = shared_->machine;
  const auto& host = shared_->profile.host;
  const StepPlan::Hop& hop = plan_.hops[id];
  const Unit unit = client_.works[id].unit;
  const std::uint32_t parts = hop.wait_count + ((hop.flags & StepPlan::kRecords) != 0 ? 2u : 1u);
  for (; thread.part < parts; ++thread.part) {
    const bool is_wait = thread.part < hop.wait_count;
    const bool is_launch = thread.part == hop.wait_count;
    if (!thread.is_blocked) {
      thread.called_ns = thread.ns;
      thread.ns += is_launch ? launch_cost(client_.works[id]) : is_wait ? host.wait_ns : host.record_ns;
    }
    thread.is_blocked = !machine.admit(client_, hop.stream, unit, thread.ns);
    if (thread.is_blocked) return false;
    if (is_launch) {
      if (Span* const span = client_.span(id, begun_ - 1)) {
        span->submitted_ns = thread.called_ns;
        span->accepted_ns = thread.ns;
      }
      machine.launch(client_, id, begun_ - 1, hop.stream, thread.ns);
    } else if (is_wait) {
      machine.wait(client_, plan_.waits[hop.first_wait + thread.part], hop.stream, unit, thread.ns);
    } else {
      machine.record(client_, hop.event, hop.stream, unit, thread.ns);
    }
  }
  thread.part = 0;
  return true;
}

void SimSession::submit_now(std::span<const CommandId> commands) {
  HostThread caller;
  caller.ns = shared_->host_ns;
  for (const CommandId id : commands) {
    while (!submit_command(id, caller)) {
      if (!shared_->machine.step()) return latch("the simulated device is stuck: a queue is full and nothing happens");
      caller.ns = std::max(caller.ns, shared_->machine.now_ns());
    }
  }
  shared_->host_ns = caller.ns;
}

void SimSession::submit_graphs() {
  for (std::uint32_t segment = 0; segment < client_.graphs.size(); ++segment) {
    const std::int64_t called_ns = shared_->host_ns;
    shared_->host_ns += shared_->profile.host.graph_ns;
    const GraphEdges& graph = client_.graphs[segment];
    for (CommandId id = graph.begin; id < graph.begin + graph.count; ++id) {
      Span* const span = client_.span(id, begun_ - 1);
      if (span == nullptr) continue;
      span->submitted_ns = called_ns;
      span->accepted_ns = shared_->host_ns;
    }
    shared_->machine.launch_graph(client_, segment, begun_ - 1, shared_->host_ns);
  }
}

void SimSession::begin_iteration() noexcept {
  catch_up();
  ++begun_;
  client_.iterations.emplace_back();
}

void SimSession::submit(std::span<const CommandId> commands) noexcept {
  if (begun_ == 0) return latch("submit() before begin_iteration()");
  if (!threads_.empty()) {
    for (const CommandId id : commands) is_marked_[id] = 1;
    arrived_.fetch_add(commands.size(), std::memory_order_release);  // pairs with catch_up()
    return;
  }
  shared_->machine.look_at_flags(shared_->host_ns);
  if (mode_ == SubmitMode::graph) {
    submit_graphs();
  } else {
    submit_now(commands);
  }
}

void SimSession::replay() {
  Machine& machine = shared_->machine;
  for (HostThread& thread : threads_) {
    thread.next = 0;
    thread.ns = shared_->host_ns;
  }
  std::fill(submitted_ns_.begin(), submitted_ns_.end(), kNoTime);
  for (;;) {
    // The thread with the earliest clock goes first, as in reality.
    HostThread* first = nullptr;
    std::int64_t first_ns = INT64_MAX;
    bool has_blocked = false;
    for (HostThread& thread : threads_) {
      while (thread.next < thread.commands.size() && is_marked_[thread.commands[thread.next]] == 0) ++thread.next;
      if (thread.next == thread.commands.size()) continue;
      has_blocked |= thread.is_blocked;
      if (thread.is_blocked) continue;
      std::int64_t ns = thread.ns;
      bool is_held_back = false;
      for (const CommandId before : foreign_predecessors_[thread.commands[thread.next]]) {
        if (is_marked_[before] == 0) continue;
        is_held_back |= submitted_ns_[before] == kNoTime;
        ns = std::max(ns, submitted_ns_[before]);
      }
      if (is_held_back || ns >= first_ns) continue;
      first = &thread;
      first_ns = ns;
    }
    if (has_blocked) {
      bool is_freed = false;
      while (!is_freed && machine.next_ns() <= first_ns && machine.step()) {
        for (HostThread& thread : threads_) {
          if (!thread.is_blocked) continue;
          const CommandId id = thread.commands[thread.next];
          if (!machine.admit(client_, plan_.hops[id].stream, client_.works[id].unit, machine.now_ns())) continue;
          thread.ns = std::max(thread.ns, machine.now_ns());
          is_freed = true;
          // The thread continues its current call before any other thread reaches that time.
          if (!submit_command(id, thread)) continue;
          submitted_ns_[id] = thread.ns;
          ++thread.next;
        }
      }
      if (is_freed) continue;
      if (first == nullptr) {
        latch("the simulated device is stuck: a queue is full and nothing happens");
        break;
      }
    }
    if (first == nullptr) break;
    first->ns = first_ns;
    const CommandId id = first->commands[first->next];
    if (!submit_command(id, *first)) continue;
    submitted_ns_[id] = first->ns;
    ++first->next;
  }
  for (const HostThread& thread : threads_) shared_->host_ns = std::max(shared_->host_ns, thread.ns);
  std::fill(is_marked_.begin(), is_marked_.end(), std::uint8_t{0});
}

void SimSession::catch_up() {
  // Acquire: pairs with the release in submit().
  const bool has_arrivals = !threads_.empty() && arrived_.load(std::memory_order_acquire) != 0;
  shared_->machine.look_at_flags(shared_->host_ns);
  if (!has_arrivals) return;
  replay();
  arrived_.store(0, std::memory_order_relaxed);  // no thread submits while this runs
}

bool SimSession::drain() {
  // Foreign kernels come and go for ever; no command of this session lasts longer than an hour.
  constexpr std::int64_t kMaxIdleNs = 100 * 3'600'000'000'000;
  std::uint64_t before = client_.outstanding;
  for (std::int64_t since_ns = shared_->machine.now_ns(); client_.outstanding != 0;) {
    if (shared_->machine.now_ns() - since_ns > kMaxIdleNs || !shared_->machine.step()) return false;
    if (client_.outstanding == before) continue;
    before = client_.outstanding;
    since_ns = shared_->machine.now_ns();
  }
  shared_->host_ns = std::max(shared_->host_ns, client_.retired_ns);
  return true;
}

void SimSession::finish() {
  catch_up();
  if (!drain()) latch(kStuck);
  shared_->host_ns += shared_->profile.host.finish_ns;
  shared_->machine.advance(shared_->host_ns);
  if (const char* const failure = std::exchange(failure_, nullptr)) fail(failure);
}

std::int64_t SimSession::now_ns() noexcept {
  catch_up();
  shared_->host_ns += shared_->profile.host.clock_ns;
  shared_->machine.advance(shared_->host_ns);
  return shared_->host_ns;
}

void SimSession::pause(std::int64_t ns) noexcept {
  catch_up();
  shared_->host_ns += std::max<std::int64_t>(0, ns);
  shared_->machine.advance(shared_->host_ns);
}

std::optional<std::uint64_t> SimSession::ended(StreamId stream) noexcept {
  if (mode_ == SubmitMode::graph || !threads_.empty()) return std::nullopt;
  if (failure_ != nullptr) return kAllEnded;
  catch_up();
  shared_->machine.advance(shared_->host_ns);
  looked_ns_ = shared_->host_ns;
  return client_.streams[stream].ended;
}

// A host that has just looked sees nothing new before the machine's next event, so it skips to the first look after
// that.
void SimSession::relax(int) noexcept {
  constexpr std::int64_t kLookNs = 100;  // a cache line that a device has written is read from memory
  catch_up();
  Machine& machine = shared_->machine;
  machine.advance(shared_->host_ns);
  const std::int64_t next_ns = looked_ns_ == shared_->host_ns ? machine.next_ns() : shared_->host_ns;
  if (next_ns == INT64_MAX) return latch(kStuck);
  const std::int64_t wait_ns = std::max(kLookNs, next_ns - shared_->host_ns);
  shared_->host_ns += (wait_ns + kLookNs - 1) / kLookNs * kLookNs;
  machine.advance(shared_->host_ns);
}

std::span<std::byte> SimSession::host_memory(BufferId id) {
  if (id >= step_.buffers().size() || step_.buffers()[id].place != Place::host)
    fail(fmt::format("buffer {} is not in host memory", id));
  const Buffer& buffer = step_.buffers()[id];
  const auto size = static_cast<std::size_t>(buffer.size_bytes());
  if (memory_[id] == nullptr) {
    constexpr std::size_t kAlignment = 64;
    memory_[id].reset(static_cast<std::byte*>(
        std::aligned_alloc(kAlignment, std::max(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment))));
    if (memory_[id] == nullptr)
      reject(fmt::format("could not allocate {} of host memory", format_bytes(size)), "Use a smaller --scale.");
    initialise(buffer, {memory_[id].get(), size});
  }
  catch_up();
  shared_->machine.advance(shared_->host_ns);
  return {memory_[id].get(), size};
}

std::vector<IterationSpan> SimSession::take_spans() {
  std::vector<IterationSpan> taken(client_.iterations.begin(), client_.iterations.end());
  client_.iterations.clear();
  client_.first_iteration = begun_;
  return taken;
}

Timeline SimSession::timeline() {
  Timeline timeline;
  timeline.source = "virtual time of the simulated device";
  timeline.has_exact_gaps = true;
  for (const Span& span : client_.spans) {
    if (span.submitted_ns == kNoTime) continue;
    timeline.spans.push_back(span);
    const Work& work = client_.works[span.command];
    if (work.unit == Unit::kernel) timeline.spans.back().blocks = work.blocks;
  }
  return timeline;
}

void SimSession::reset() {
  for (std::size_t id = 0; id < memory_.size(); ++id)
    if (memory_[id] != nullptr)
      initialise(step_.buffers()[id], {memory_[id].get(), static_cast<std::size_t>(step_.buffers()[id].size_bytes())});
}

void SimSession::read(BufferId, std::span<std::byte>) {
  fail("a simulated device computes nothing that could be read");
}

MemoryUse SimSession::memory() const {
  MemoryUse use;
  use.allocated_bytes = step_.size_bytes(Place::device) + step_.size_bytes(Place::host);
  use.reason = "a simulated device reserves nothing";
  return use;
}

std::optional<Footprint> SimSession::footprint(CommandId id) const {
  const Work& work = client_.works[id];
  if (work.unit != Unit::kernel) return std::nullopt;
  return Footprint{work.blocks, work.blocks_per_multiprocessor};
}

}  // namespace weir::sim
