#include "device/cpu/workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <latch>
#include <memory>
#include <new>
#include <system_error>

#include "base/error.h"
#include "device/rank/communicator.h"
#include "kernel/body.h"
#include "kernel/fp8.h"

namespace weir::cpu {

namespace {

// Row kernels grow their scratch on first use, which may be in a sample: reserve rows of 64 K elements ahead.
void prepare_scratch() noexcept {
  constexpr std::int64_t kReadyScratch = 1 << 16;
  try {
    scratch(kReadyScratch);
  } catch (const std::bad_alloc&) {  // it grows later, and a kernel that needs it reports the failure
  }
}

}  // namespace

// The collectives that this rank has started and that have not ended.
class Engine::Collectives {
 public:
  Collectives(Engine& engine, ThreadGroup& group) noexcept : engine_(engine), group_(group) {}
  bool is_empty() const noexcept { return count_ == 0; }

  void start(std::uint32_t slot) noexcept {
    const Resident& resident = group_.pool[slot];
    PreparedStep& step = *resident.step;
    const PreparedCommand& command = step.commands[resident.command];
    const ElementType type = command.call.shape.type;
    step.times.started(resident.command, resident.iteration);
    try {
      const Communicator::Request request = step.communicator->start(
          command.stream, command.collective, type, command.from, command.to, command.size_bytes / size_of(type));
      pending_[count_++] = {slot, request};
    } catch (...) {
      step.latch(std::current_exception());
      engine_.end(group_, slot);
    }
  }

  // Tests each once and ends those that are done; false if none is.
  bool poll() noexcept {
    bool has_ended = false;
    for (std::uint32_t i = 0; i < count_;) {
      const Pending pending = pending_[i];
      PreparedStep& step = *group_.pool[pending.slot].step;
      bool is_done = true;
      try {
        is_done = step.communicator->test(pending.request);
      } catch (...) {
        step.latch(std::current_exception());
      }
      if (!is_done) {
        ++i;
        continue;
      }
      pending_[i] = pending_[--count_];
      engine_.end(group_, pending.slot);
      has_ended = true;
    }
    return has_ended;
  }

 private:
  struct Pending {
    std::uint32_t slot = 0;
    Communicator::Request request = 0;
  };
  Engine& engine_;
  ThreadGroup& group_;
  std::array<Pending, BlockPool::kSlots> pending_;
  std::uint32_t count_ = 0;
};

Engine::Engine(int queue_count, int worker_count)
    : graph_queue_(queue_count),
      queues_(std::make_unique<HardwareQueue[]>(static_cast<std::size_t>(queue_count) + 1)),
      worker_count_(worker_count) {
  try {
    start_threads(Unit::workers);
    start_threads(Unit::copy);
  } catch (...) {
    stop();  // threads that did start must end, or joining them would never return
    throw;
  }
}

Engine::~Engine() { stop(); }

void Engine::start_threads(Unit unit) {
  ThreadGroup& mine = group(unit);
  if (mine.has_threads) return;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  const int counts[kUnits] = {worker_count_, kCopyEngines, std::max(1, cores / 2), 1};  // by unit
  const int count = counts[static_cast<std::size_t>(unit)];
  // Shared with the threads: if one cannot be started, the others outlive this call.
  const auto unready = std::make_shared<std::latch>(count);
  try {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this, &mine, unit, unready] {
        if (unit != Unit::collective) prepare_scratch();
        unready->count_down();
        unit == Unit::collective ? work_on_collectives(mine) : work(mine);
      });
  } catch (const std::system_error& error) {
    fail(fmt::format("cpu: cannot start a worker thread: {}", error.what()),
         "Raise the limits on processes and address space (ulimit -u, ulimit -v).");
  }
  // On a busy machine a thread may start late, and its startup would be part of a sample.
  unready->wait();
  mine.has_threads = true;
}

std::vector<std::uint8_t> Engine::assign_queues(int streams) {
  std::vector<std::uint8_t> queues;
  for (int i = 0; i < streams; ++i) {
    queues.push_back(static_cast<std::uint8_t>(next_queue_));
    next_queue_ = (next_queue_ + 1) % queue_count();
  }
  return queues;
}

void Engine::stop() noexcept {
  is_stopping_.store(true, std::memory_order_seq_cst);  // pairs with the loads in work()
  for (ThreadGroup& group : groups_) group.bell.ring_all();
}

bool Engine::has_work(const ThreadGroup& group) const noexcept {
  return !pushed_.is_empty() || group.pool.has_blocks() || !held_.is_empty() ||
         is_stopping_.load(std::memory_order_seq_cst);  // pairs with the store in stop()
}

void Engine::work(ThreadGroup& group) noexcept {
  unsigned idle_rounds = 0;
  for (;;) {
    // New packets go first, before every block: something more urgent may have arrived.
    if (!pushed_.is_empty()) pump(pushed_.take(), group);
    if (BlockPool::Claim claim; group.pool.claim(claim)) {
      run(group, claim);
      idle_rounds = 0;
    } else if (!held_.is_empty()) {
      yield_core();
      pump(held_.take(), group);
    } else if (is_stopping_.load(std::memory_order_seq_cst)) {  // pairs with the store in stop()
      return;
    } else if (idle_rounds < kSpins) {
      spin(idle_rounds++);
    } else {
      group.bell.sleep_unless([&] { return has_work(group); });
      idle_rounds = 0;
    }
  }
}

void Engine::work_on_collectives(ThreadGroup& group) noexcept {
  Collectives collectives(*this, group);
  unsigned idle_rounds = 0;
  for (;;) {
    if (!pushed_.is_empty()) pump(pushed_.take(), group);
    bool is_busy = false;
    for (BlockPool::Claim claim; group.pool.claim(claim); is_busy = true) collectives.start(claim.slot);
    if (!held_.is_empty()) pump(held_.take(), group);
    if (collectives.poll() || is_busy) {
      idle_rounds = 0;
    } else if (idle_rounds < kSpins) {
      spin(idle_rounds++);
    } else if (!collectives.is_empty()) {
      yield_core();  // another rank on this host may need the core to start its part
    } else if (is_stopping_.load(std::memory_order_seq_cst)) {  // pairs with the store in stop()
      return;
    } else {
      group.bell.sleep_unless([&] { return has_work(group); });
      idle_rounds = 0;
    }
  }
}

void Engine::run(ThreadGroup& group, const BlockPool::Claim& claim) noexcept {
  Resident& resident = group.pool[claim.slot];
  PreparedStep& step = *resident.step;
  if (claim.block == 0) step.times.started(resident.command, resident.iteration);
  PreparedCommand& command = step.commands[resident.command];
  if (command.is_fp8) {
    if (claim.block == 0) {
      find_fp8_scales(command.call);
      resident.has_scales.store(true, std::memory_order_release);  // pairs with the load below
    }
    // Blocks are claimed in order, so a thread is at it.
    while (!resident.has_scales.load(std::memory_order_acquire)) yield_core();  // pairs with the store above
  }
  try {
    command.run(claim.block);
  } catch (...) {
    step.latch(std::current_exception());
  }
  // Releases this block's writes, acquires those of the others: pairs with itself.
  if (resident.blocks == 1 || resident.unended.fetch_sub(1, std::memory_order_acq_rel) == 1) end(group, claim.slot);
}

void Engine::end(ThreadGroup& group, std::uint32_t slot) noexcept {
  BlockPool& pool = group.pool;
  PreparedStep& step = *pool[slot].step;
  const CommandId command = pool[slot].command;
  const int queue = pool[slot].queue;
  const bool ends_iteration = step.times.ended(command, pool[slot].iteration);
  pool.release(slot);
  step.streams[step.commands[command].stream].count_end();

  QueueSet todo;
  todo.add(queue);
  if (queue == graph_queue_) {
    // The graph's packet is still in its queue and keeps the step alive until the last of these calls has returned.
    step.graphs[step.segment_of[command]]->end(command);
  } else {
    free_stream(step, step.commands[command].stream, todo);
    retire(step);
  }
  if (ends_iteration) host_bell_.ring_all();
  if (!starved_.is_empty()) todo.add(starved_.take());
  pump(todo, group);
}

void Engine::free_stream(PreparedStep& step, StreamId stream, QueueSet& todo) noexcept {
  auto& word = step.streams[stream].word;
  std::uint64_t state = word.load(std::memory_order_acquire);  // pairs with the exchange in drain_record()
  bool has_recorded = false;
  // The event goes first: once the stream is free, the next instance may be recorded, and instances must not go back.
  do {
    if ((state & StreamState::kRecords) != 0 && !has_recorded) {
      step.events[StreamState::event_in(state)].set_done(StreamState::instance_in(state));
      has_recorded = true;
      if (!waiting_.is_empty()) todo.add(waiting_.take());
    }
    // Release: the next command of the stream sees what this one wrote. Pairs with drain_launch() and drain_record().
  } while (!word.compare_exchange_weak(state, StreamState::kIdle, std::memory_order_acq_rel));
}

void Engine::retire(PreparedStep& step) noexcept {
  // Pairs with the load in Session::finish(), after which the step may be gone.
  if (step.outstanding.fetch_sub(1, std::memory_order_seq_cst) == 1) host_bell_.ring_all();
}

void Engine::pump(const QueueSet& queues, const ThreadGroup& own) noexcept {
  Offer offer;
  offer.todo = queues;
  for (int queue; (queue = offer.todo.take()) >= 0;) {
    queues_[static_cast<std::size_t>(queue)].turnstile.pass([&] {
      if (queue == graph_queue_) {
        drain_graphs(offer);
      } else {
        drain(queue, offer);
      }
    });
  }
  for (std::size_t i = 0; i < kUnits; ++i) {
    // This thread takes a block itself when it returns to its loop.
    if (&own == &groups_[i] && offer.blocks[i] > 0) --offer.blocks[i];
    groups_[i].bell.ring(offer.blocks[i]);
  }
}

void Engine::drain(int queue, Offer& offer) noexcept {
  HardwareQueue& ring = queues_[static_cast<std::size_t>(queue)];
  // Stops at the first packet that is not ready, even if later packets are of other streams: head-of-line blocking.
  while (const Packet* head = ring.front()) {
    const Packet packet = *head;
    switch (packet.kind) {
      case PacketKind::launch:
        if (!drain_launch(queue, packet, offer)) return;
        ring.pop();
        continue;  // retires when it ends
      case PacketKind::record:
        if (!drain_record(packet, offer)) return;
        break;
      case PacketKind::wait:
        if (!drain_wait(queue, packet)) return;
        break;
      case PacketKind::graph:
        break;
    }
    ring.pop();
    retire(*packet.step);
  }
}

bool Engine::drain_launch(int queue, const Packet& packet, Offer& offer) noexcept {
  auto& word = packet.step->streams[packet.stream].word;
  if (word.load(std::memory_order_acquire) != StreamState::kIdle) return false;  // pairs with free_stream()
  const bool may_be_held = !packet.step->held.empty();
  if (may_be_held && packet.step->holds(packet.subject, packet.number)) [[unlikely]] {
    held_.add(queue);  // idle threads try again
    return false;
  }
  const std::uint32_t slot = acquire(group(packet.step->unit_of[packet.subject]).pool, queue);
  if (slot == BlockPool::kNoSlot) return false;
  if (may_be_held) packet.step->let_go(packet.subject);
  word.store(StreamState::kRuns, std::memory_order_relaxed);  // published to the ending worker by the slot
  launch(*packet.step, packet.subject, packet.number, queue, slot, offer);
  return true;
}

// Does not block the queue: the event is attached to the command that runs on the stream.
bool Engine::drain_record(const Packet& packet, Offer& offer) noexcept {
  auto& word = packet.step->streams[packet.stream].word;
  std::uint64_t state = word.load(std::memory_order_acquire);  // pairs with free_stream()
  while (state != StreamState::kIdle) {
    if ((state & StreamState::kRecords) != 0) return false;  // there is room for one; its end pumps this queue
    if (word.compare_exchange_weak(state, StreamState::recording(packet.subject, packet.number),
                                   std::memory_order_acq_rel))  // pairs with free_stream()
      return true;
  }
  packet.step->events[packet.subject].set_done(packet.number);
  if (!waiting_.is_empty()) offer.todo.add(waiting_.take());
  return true;
}

bool Engine::drain_wait(int queue, const Packet& packet) noexcept {
  const EventState& event = packet.step->events[packet.subject];
  if (event.is_done(packet.number)) return true;
  // Check again after setting the bit: either this sees the event now, or the thread that completes it sees the bit.
  waiting_.add(queue);
  return event.is_done(packet.number);
}

void Engine::drain_graphs(Offer& offer) noexcept {
  HardwareQueue& ring = queues_[static_cast<std::size_t>(graph_queue_)];
  while (const Packet* head = ring.front()) {
    PreparedStep& step = *head->step;
    Graph& graph = *step.graphs[head->subject];
    if (!graph.is_running()) graph.start();
    for (CommandId command; (command = graph.ready()) != Graph::kNone; graph.take_ready()) {
      const std::uint32_t slot = acquire(group(step.unit_of[command]).pool, graph_queue_);
      if (slot == BlockPool::kNoSlot) return;
      launch(step, command, head->number, graph_queue_, slot, offer);
    }
    if (!graph.take_end()) return;
    ring.pop();
    retire(step);
  }
}

std::uint32_t Engine::acquire(BlockPool& pool, int queue) noexcept {
  const std::uint32_t slot = pool.acquire();
  if (slot != BlockPool::kNoSlot) return slot;
  // Try again after setting the bit: either this gets the slot, or the thread that releases one sees the bit.
  starved_.add(queue);
  return pool.acquire();
}

void Engine::launch(PreparedStep& step, CommandId command, std::uint32_t iteration, int queue, std::uint32_t slot,
                    Offer& offer) noexcept {
  const PreparedCommand& prepared = step.commands[command];
  const std::uint32_t blocks = prepared.blocks;
  BlockPool& pool = group(prepared.unit).pool;
  offer.blocks[static_cast<std::size_t>(prepared.unit)] += blocks;
  Resident& resident = pool[slot];
  resident.step = &step;
  resident.command = command;
  resident.iteration = iteration;
  resident.blocks = blocks;
  resident.queue = queue;
  resident.unended.store(blocks, std::memory_order_relaxed);  // publish() below releases it
  resident.has_scales.store(false, std::memory_order_relaxed);
  step.times.launched(command, iteration);
  // From here on the command may end, and the step with it.
  pool.publish(slot, prepared.level, blocks);
}

}  // namespace weir::cpu
