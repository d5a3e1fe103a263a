// Streams, events and captures of the fake GPU: what runs when.
#include <algorithm>
#include <atomic>
#include <thread>

#include "device/fake_gpu_state.h"
#include "kernel/random.h"

namespace weir::fake_gpu {

State& state() {
  static State kState;
  return kState;
}

int& current_context() {
  static thread_local int kCurrent = 0;
  return kCurrent;
}

namespace {

std::uint32_t draw(std::size_t below) {
  State& s = state();
  return random_bits(s.settings.seed, ++s.steps) % static_cast<std::uint32_t>(below);
}

int execute(Operation& operation) {
  State& s = state();
  s.now_ms += 0.001;
  if (operation.kind == Operation::Kind::record) {
    operation.event->done = std::max(operation.event->done, operation.version);
    operation.event->time_ms = s.now_ms;
    return 0;
  }
  return operation.kind == Operation::Kind::work ? operation.work() : 0;
}

// Outside of graphs, whose events are their own.
bool is_ready(const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::wait:
      return operation.event->done >= operation.version;
    case Operation::Kind::wait_value: {
      // Acquire: what the host wrote before the word. Pairs with its release, whoever waits.
      const std::uint32_t word = std::atomic_ref(*operation.word).load(std::memory_order_acquire);
      return static_cast<std::int32_t>(word - static_cast<std::uint32_t>(operation.version)) >= 0;
    }
    default:
      return true;
  }
}

// Advances some stream by one operation; false if none can.
bool advance(std::vector<std::deque<Operation>*>& queues, const std::function<bool(const Operation&)>& can_start,
             int& result) {
  std::vector<std::deque<Operation>*> ready;
  for (auto* queue : queues)
    if (!queue->empty() && can_start(queue->front())) ready.push_back(queue);
  if (ready.empty()) return false;
  std::deque<Operation>& chosen = *ready[draw(ready.size())];
  Operation operation = std::move(chosen.front());
  chosen.pop_front();
  if (const int failed = execute(operation); failed != 0 && result == 0) result = failed;
  return true;
}

// Runs what was submitted, in an order of chance, until `is_enough`. Lets others in while a stream waits for the host.
int run_until(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_enough) {
  State& s = state();
  while (!is_enough()) {
    std::vector<std::deque<Operation>*> queues;
    for (GpuStream stream : s.streams) queues.push_back(&stream->pending);
    int result = 0;
    if (!advance(queues, is_ready, result)) {
      const bool waits_for_host = std::any_of(queues.begin(), queues.end(), [](const std::deque<Operation>* queue) {
        return !queue->empty() && queue->front().kind == Operation::Kind::wait_value;
      });
      if (!waits_for_host) return kDeadlock;
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    if (result != 0) s.broken = result;
    if (s.broken != 0) return s.broken;
  }
  return s.broken;
}

}  // namespace

// A graph's launch: its own streams and events, again in an order of chance.
int run_graph(const Capture& capture) {
  std::map<GpuStream, std::deque<Operation>> streams;
  for (const auto& [stream, operation] : capture.operations) streams[stream].push_back(operation);
  std::map<GpuEvent, std::uint64_t> done;
  std::vector<std::deque<Operation>*> queues;
  for (auto& [stream, queue] : streams) {
    for (Operation& operation : queue) {
      if (operation.kind != Operation::Kind::record) continue;
      GpuEvent const event = operation.event;
      const std::uint64_t version = operation.version;
      operation.kind = Operation::Kind::work;
      operation.work = [&done, event, version] { return done[event] = std::max(done[event], version), 0; };
    }
    queues.push_back(&queue);
  }
  int result = 0;
  const auto can_start = [&](const Operation& o) {
    return o.kind != Operation::Kind::wait || done[o.event] >= o.version;
  };
  while (advance(queues, can_start, result)) {
  }
  for (const auto* queue : queues)
    if (!queue->empty()) return kDeadlock;
  return result;
}

int enqueue(GpuStream stream, Operation operation) {
  State& s = state();
  if (s.broken != 0) return s.broken;
  if (!s.streams.contains(stream)) return kInvalid;
  if (stream->capture != nullptr) {
    if (stream != s.origin) stream->capture->open.insert(stream);
    stream->capture->operations.emplace_back(stream, std::move(operation));
  } else {
    stream->pending.push_back(std::move(operation));
    // Some work is done while more is submitted, as on a real device.
    if (draw(4) == 0) {
      std::vector<std::deque<Operation>*> queues;
      for (GpuStream other : s.streams) queues.push_back(&other->pending);
      int result = 0;
      advance(queues, is_ready, result);
      if (result != 0) s.broken = result;
    }
  }
  return 0;
}

int enqueue_work(GpuStream stream, std::function<int()> work) {
  return enqueue(stream, {.kind = Operation::Kind::work, .work = std::move(work)});
}

int event_record(GpuEvent event, GpuStream stream) {
  const Lock lock(state().mutex);
  event->capture = stream->capture != nullptr ? state().captures : 0;
  const std::uint64_t version = ++event->recorded;
  return enqueue(stream, {.kind = Operation::Kind::record, .event = event, .version = version});
}

int stream_wait(GpuStream stream, GpuEvent event, unsigned) {
  const Lock lock(state().mutex);
  State& s = state();
  if (event->recorded == 0) return 0;  // never recorded: a no-op, as on a real device
  // A capture knows no event from outside of it, and nobody outside knows its events.
  const bool is_capturing = stream->capture != nullptr || (event->capture != 0 && s.capture != nullptr);
  if (is_capturing ? event->capture != s.captures : event->capture != 0) return kIsolated;
  if (is_capturing) {
    stream->capture = s.capture.get();
    if (stream == s.origin) {
      // What the origin waits for is joined, if it was the last thing in its stream.
      for (GpuStream other : std::set(s.capture->open)) {
        const auto last = std::find_if(s.capture->operations.rbegin(), s.capture->operations.rend(),
                                       [&](const auto& each) { return each.first == other; });
        if (last->second.event == event && last->second.version == event->recorded) s.capture->open.erase(other);
      }
    }
  }
  return enqueue(stream, {.kind = Operation::Kind::wait, .event = event, .version = event->recorded});
}

int stream_wait_value(GpuStream stream, GpuPointer at, std::uint32_t value, unsigned flags) {
  const Lock lock(state().mutex);
  if (flags != kGpuWaitAtLeast) return kInvalid;
  return enqueue(stream,
                 {.kind = Operation::Kind::wait_value, .version = value, .word = reinterpret_cast<std::uint32_t*>(at)});
}

int stream_synchronize(GpuStream stream) {
  std::unique_lock lock(state().mutex);
  return run_until(lock, [&] { return stream->pending.empty(); });
}

int synchronize() {
  std::unique_lock lock(state().mutex);
  return run_until(lock, [] {
    return std::all_of(state().streams.begin(), state().streams.end(),
                       [](const auto& each) { return each->context != current_context() || each->pending.empty(); });
  });
}

int event_synchronize(GpuEvent event) {
  std::unique_lock lock(state().mutex);
  return run_until(lock, [&] { return event->done >= event->recorded; });
}

int event_elapsed(float* milliseconds, GpuEvent from, GpuEvent to) {
  const Lock lock(state().mutex);
  if (state().broken != 0) return state().broken;
  if (!from->has_timing || !to->has_timing || from->recorded == 0 || to->recorded == 0) return kInvalid;
  if (from->done < from->recorded || to->done < to->recorded) return kNotReady;
  *milliseconds = static_cast<float>(to->time_ms - from->time_ms);
  return 0;
}

int capture_begin(GpuStream stream, int) {
  const Lock lock(state().mutex);
  State& s = state();
  s.capture = std::make_unique<Capture>();
  ++s.captures;
  s.origin = stream;
  stream->capture = s.capture.get();
  return 0;
}

int capture_end(GpuStream stream, GpuGraph* graph) {
  const Lock lock(state().mutex);
  State& s = state();
  if (stream != s.origin) return kInvalid;
  for (GpuStream each : s.streams) each->capture = nullptr;
  const std::unique_ptr<Capture> capture = std::move(s.capture);
  if (!capture->open.empty()) return kUnjoined;
  *graph = new GpuGraphHandle{std::move(*capture)};
  ++s.graphs;
  return 0;
}

}  // namespace weir::fake_gpu
