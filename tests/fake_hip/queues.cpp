// Hardware queues of the fake HIP runtime: who gets which, and what their threads do.
#include <bit>
#include <thread>

#include "base/clock.h"
#include "state.h"

namespace weir::fake_hip {

// Never destroyed: threads use it until the process ends.
State& state() {
  static State& kState = *new State;
  return kState;
}

void note(const std::string& line) { state().log += line + "\n"; }

namespace {

// Takes one operation after the other. A wait blocks everything behind it, whichever stream that belongs to: as a
// barrier packet does.
void serve(const std::shared_ptr<Queue>& queue) {
  State& s = state();
  Lock lock(s.mutex);
  for (;;) {
    queue->arrived.wait(lock, [&] { return !queue->pending.empty() || queue->is_closed; });
    if (queue->pending.empty()) {
      s.queues.erase(queue);
      return;
    }
    Queued next = std::move(queue->pending.front());
    queue->pending.pop_front();
    Operation& operation = next.operation;
    if (operation.kind == Operation::Kind::wait) {
      s.changed.wait(lock, [&] { return operation.event->done >= operation.version || s.lost != 0; });
    } else if (operation.kind == Operation::Kind::record) {
      // An event that was recorded again meanwhile means the later record.
      if (operation.version > operation.event->done) {
        operation.event->done = operation.version;
        operation.event->time_ns = now_ns();
      }
    } else if (s.lost == 0) {
      const int compute_units = queue->compute_units;
      const FakeHipObserver* const observer = operation.observed == 0 ? nullptr : s.observer;
      lock.unlock();
      const std::int64_t started = now_ns();
      operation.work(compute_units);
      operation.work = nullptr;
      // Before anybody can see that it has ended.
      if (observer != nullptr) observer->ran(operation.observed, started, now_ns());
      lock.lock();
    }
    ++next.stream->ended;
    ++queue->ended;
    s.changed.notify_all();
  }
}

std::shared_ptr<Queue> open_queue(std::string name, int compute_units) {
  auto queue = std::make_shared<Queue>();
  queue->name = std::move(name);
  queue->number = ++state().queues_made;
  queue->compute_units = compute_units;
  state().queues.insert(queue);
  std::thread([queue] { serve(queue); }).detach();
  return queue;
}

// ROCm's way: a queue more as long as the pool may grow, then the one that fewest streams use.
std::shared_ptr<Queue> queue_of_pool(Device& device, int priority) {
  constexpr const char* kPools[] = {"high", "normal", "low"};
  const int level = state().ignores_priority ? 1 : priority < 0 ? 0 : priority == 0 ? 1 : 2;
  auto& pool = device.pools[static_cast<std::size_t>(level)];
  std::shared_ptr<Queue> fewest;
  for (const auto& queue : pool)
    if (fewest == nullptr || queue->streams < fewest->streams) fewest = queue;
  if (state().settings.takes_turns) {
    while (static_cast<int>(pool.size()) < state().queues_per_pool)
      pool.push_back(
          open_queue(std::string(kPools[level]) + ":" + std::to_string(pool.size()), state().settings.compute_units));
    return pool[device.turns[static_cast<std::size_t>(level)]++ % pool.size()];
  }
  const bool may_grow = static_cast<int>(pool.size()) < state().queues_per_pool;
  if (fewest != nullptr && (fewest->streams == 0 || !may_grow)) return fewest;
  const std::string name = std::string(kPools[level]) + ":" + std::to_string(pool.size());
  return pool.emplace_back(open_queue(name, state().settings.compute_units));
}

// Host functions and callbacks, one after the other on one thread.
class HostThread {
 public:
  HostThread() {
    std::thread([this] { work(); }).detach();
  }
  void run(std::function<void()> body) {
    Lock lock(mutex_);
    const std::uint64_t turn = ++asked_;
    bodies_.push_back(std::move(body));
    changed_.notify_all();
    changed_.wait(lock, [&] { return ended_ >= turn; });
  }

 private:
  void work() {
    Lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !bodies_.empty(); });
      const std::function<void()> body = std::move(bodies_.front());
      bodies_.pop_front();
      lock.unlock();
      body();
      lock.lock();
      ++ended_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> bodies_;
  std::uint64_t asked_ = 0, ended_ = 0;
};

}  // namespace

hipStream_t make_stream(int device, int priority, const std::vector<std::uint32_t>& mask) {
  State& s = state();
  Device& owner = s.devices[device];
  auto stream = std::make_shared<ihipStream_t>();
  stream->number = s.streams_made++;
  stream->device = device;
  std::string what = "priority " + std::to_string(priority);
  if (mask.empty()) {
    stream->queue = queue_of_pool(owner, priority);
  } else {
    int units = 0;
    what = "mask";
    for (const std::uint32_t word : mask) {
      units += std::popcount(word);
      char text[16];
      std::snprintf(text, sizeof text, " %08x", word);
      what += text;
    }
    stream->is_masked = true;
    stream->queue = open_queue("mask:" + std::to_string(owner.masked_queues++), units);
  }
  ++stream->queue->streams;
  note("stream " + std::to_string(stream->number) + " on device " + std::to_string(device) + ": " + what + ", queue " +
       stream->queue->name);
  s.streams[stream.get()] = stream;
  return stream.get();
}

void drop_stream(ihipStream_t& stream) {
  State& s = state();
  --stream.queue->streams;
  if (stream.is_masked) {
    stream.queue->is_closed = true;
    stream.queue->arrived.notify_all();
  }
  s.streams.erase(&stream);
}

std::shared_ptr<ihipStream_t> find_stream(hipStream_t handle) {
  State& s = state();
  if (handle == nullptr) {
    Device& device = s.devices[current_device()];
    if (device.default_stream == nullptr) device.default_stream = s.streams.at(make_stream(current_device(), 0, {}));
    return device.default_stream;
  }
  if (handle == hipStreamPerThread) {
    static thread_local std::map<int, hipStream_t> own;
    hipStream_t& made = own[current_device()];
    if (!s.streams.contains(made)) made = make_stream(current_device(), 0, {});
    return s.streams.at(made);
  }
  const auto found = s.streams.find(handle);
  return found == s.streams.end() ? nullptr : found->second;
}

void push(const std::shared_ptr<ihipStream_t>& stream, Operation operation) {
  if (const FakeHipObserver* const observer = state().observer;
      observer != nullptr && operation.kind == Operation::Kind::work && operation.what.kind != FakeHipWork::other)
    operation.observed = observer->submitted(&operation.what, stream->number, stream->queue->number);
  ++stream->submitted;
  ++stream->queue->submitted;
  stream->queue->pending.push_back({stream, std::move(operation)});
  stream->queue->arrived.notify_one();
}

ObservedCall::ObservedCall(const char* name) {
  const Lock lock(state().mutex);
  observer_ = state().observer;
  if (observer_ != nullptr) observer_->call_began(name);
}

ObservedCall::~ObservedCall() {
  if (observer_ != nullptr) observer_->call_ended();
}

hipError_t submit(hipStream_t handle, const char* call, const FakeHipWork& what, std::function<void(int)> work) {
  const ObservedCall observed(call);
  const Lock lock(state().mutex);
  if (state().lost != 0) return static_cast<hipError_t>(state().lost);
  const auto stream = find_stream(handle);
  if (stream == nullptr) return hipErrorInvalidHandle;
  Operation operation{Operation::Kind::work, std::move(work), nullptr, 0, what};
  if (stream->capture != nullptr) {
    append(*stream, std::move(operation), nullptr);
  } else {
    push(stream, std::move(operation));
  }
  return hipSuccess;
}

void await_ended(Lock& lock, ihipStream_t& stream) {
  State& s = state();
  const std::uint64_t until = stream.submitted;
  s.changed.wait(lock, [&] { return stream.ended >= until; });
  if (s.lost != 0) await_all(lock);
}

void await_all(Lock& lock) {
  State& s = state();
  std::vector<std::pair<std::shared_ptr<Queue>, std::uint64_t>> awaited;
  for (const auto& queue : s.queues) awaited.emplace_back(queue, queue->submitted);
  for (const auto& [queue, until] : awaited) s.changed.wait(lock, [&] { return queue->ended >= until; });
}

void run_on_host_thread(std::function<void()> body) {
  static HostThread& kThread = *new HostThread;
  kThread.run(std::move(body));
}

bool may_run_kernel() {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.settings.lost_after >= 0 && s.kernels++ >= s.settings.lost_after && s.lost == 0) {
    s.lost = hipErrorLaunchFailure;
    note("lost");
    s.changed.notify_all();
  }
  return s.lost == 0;
}

}  // namespace weir::fake_hip
