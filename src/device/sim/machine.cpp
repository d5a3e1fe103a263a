#include "device/sim/machine.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>

#include "kernel/toil.h"

namespace weir::sim {
namespace {

std::size_t server_count(const SimProfile& profile, Unit unit) {
  switch (unit) {
    case Unit::to_device:
      return static_cast<std::size_t>(profile.copy_engines.to_device);
    case Unit::to_host:
      return static_cast<std::size_t>(profile.copy_engines.to_host);
    case Unit::on_device:
      return static_cast<std::size_t>(profile.copy_engines.on_device);
    case Unit::host:
      return static_cast<std::size_t>(profile.host_threads);
    case Unit::link:
      return 1;
    case Unit::kernel:
      return 0;
  }
  return 0;
}

}  // namespace

Machine::Machine(const SimProfile& profile)
    : profile_(profile),
      blocks_(profile_, calendar_),
      map_(profile_),
      queues_(static_cast<std::size_t>(packet_queues(profile)) +
              (kUnits - 1) * static_cast<std::size_t>(std::max<std::int64_t>(1, profile.engine_queues))),
      random_(static_cast<std::uint64_t>(profile.seed)) {
  for (std::size_t unit = 0; unit < kUnits; ++unit)
    engines_[unit].assign(server_count(profile_, static_cast<Unit>(unit)), kStartNs);
  for (std::size_t i = 1; i < switch_ns_.size(); ++i)
    switch_ns_[i] =
        profile_.device.switch_ns +
        std::llround(static_cast<double>(profile_.device.switch_per_doubling_ns) * std::log2(static_cast<double>(i)));
  if (profile_.foreign_load > 0) foreign(false);
}

std::int32_t Machine::queue_of(const Stream& stream, Unit unit) const noexcept {
  if (unit == Unit::kernel || profile_.engine_queues == 0) return stream.queue;
  if (unit == Unit::host && profile_.host_in_queue != 0) return stream.queue;
  const auto each = static_cast<std::int32_t>(profile_.engine_queues);
  return static_cast<std::int32_t>(packet_queues(profile_)) + (static_cast<std::int32_t>(unit) - 1) * each +
         stream.number % each;
}

void Machine::Queue::push(const Packet& packet) {
  if (size() == ring.size()) {
    std::vector<Packet> larger(std::max<std::size_t>(64, 2 * ring.size()));
    for (std::uint64_t i = head; i < tail; ++i) larger[i & (larger.size() - 1)] = ring[i & (ring.size() - 1)];
    ring = std::move(larger);
  }
  ring[tail++ & (ring.size() - 1)] = packet;
}

void Machine::open(Client& client) {
  const auto free = std::find(clients_.begin(), clients_.end(), nullptr);
  client.id = static_cast<std::uint32_t>(free - clients_.begin());
  if (free == clients_.end()) clients_.push_back(&client);
  clients_[client.id] = &client;
  for (std::size_t i = 0; i < client.streams.size(); ++i) {
    Stream& stream = client.streams[i];
    stream.home = stream.queue = map_.create();
    stream.number = static_cast<std::int32_t>(i);
  }
  if (profile_.graph_queues == GraphQueues::own && !client.graph_packets.empty())
    for (std::size_t i = 0; i < client.streams.size(); ++i)
      client.streams[i].queue =
          static_cast<std::int32_t>(profile_.queues + static_cast<std::int64_t>(i) % profile_.queues);
  open_streams_ += client.streams.size();
  if (!client.holds.empty()) ++clients_with_holds_;
}

void Machine::close(Client& client) noexcept {
  for (const Stream& stream : client.streams) map_.drop(stream.home);
  open_streams_ -= client.streams.size();
  if (!client.holds.empty()) --clients_with_holds_;
  clients_[client.id] = nullptr;
}

void Machine::take_queue(Stream& stream) noexcept {
  if (!map_.is_dynamic() || stream.outstanding != 0) return;
  stream.queue = map_.assign(stream.home);
  stream.last_queue = kNoQueue;
}

bool Machine::admit(Client& client, StreamId index, Unit unit, std::int64_t host_ns) {
  Stream& stream = client.streams[index];
  if (map_.is_dynamic()) {
    advance(host_ns);
    take_queue(stream);
  }
  const Queue& queue = queues_[static_cast<std::size_t>(queue_of(stream, unit))];
  const auto depth = static_cast<std::size_t>(profile_.queue_depth);
  if (queue.size() < depth) return true;
  advance(host_ns);
  return queue.size() < depth;
}

void Machine::push(Client& client, std::int32_t index, const Packet& packet) {
  ++client.streams[packet.stream].outstanding;
  ++client.outstanding;
  Queue& queue = queues_[static_cast<std::size_t>(index)];
  const bool was_empty = queue.size() == 0;
  queue.push(packet);
  if (was_empty)
    schedule(static_cast<std::uint32_t>(index), std::max(packet.visible_ns, queue.free_ns) + profile_.device.launch_ns);
}

void Machine::launch(Client& client, CommandId command, std::uint32_t iteration, StreamId index, std::int64_t host_ns) {
  Stream& stream = client.streams[index];
  const std::int32_t queue = queue_of(stream, client.works[command].unit);
  if (!is_engine_queue(queue)) map_.add_command(queue);
  Queue& target = queues_[static_cast<std::size_t>(queue)];
  const bool has_barrier = needs_barrier(stream, queue);
  stream.last_queue = queue;
  stream.last_slot = target.tail;
  if (has_barrier) target.barrier_end = target.tail + 1;
  push(client, queue,
       {&client, host_ns + profile_.device.doorbell_ns, command, iteration, index, PacketKind::launch,
        stream.launches++, has_barrier});
}

// With barrier 2, as ROCm since August 2026 (rocm-systems pull request 9895): a stream's first command in a queue needs
// no barrier, a later one only if there has been none since the stream's last command there.
bool Machine::needs_barrier(const Stream& stream, std::int32_t queue) const noexcept {
  if (profile_.barrier != 2) return profile_.barrier != 0;
  return stream.last_queue == queue && queues_[static_cast<std::size_t>(queue)].barrier_end <= stream.last_slot + 1;
}

void Machine::record(Client& client, EventId event, StreamId stream, Unit unit, std::int64_t host_ns) {
  const std::uint32_t instance = ++client.events[event].submitted;
  push(client, queue_of(client.streams[stream], unit),
       {&client, host_ns + profile_.device.doorbell_ns, event, instance, stream, PacketKind::record});
}

void Machine::wait(Client& client, EventId event, StreamId stream, Unit unit, std::int64_t host_ns) {
  const std::uint32_t instance = client.events[event].submitted;
  if (instance == 0) return;  // never recorded: as on GPUs, there is nothing to wait for
  push(client, queue_of(client.streams[stream], unit),
       {&client, host_ns + profile_.device.doorbell_ns, event, instance, stream, PacketKind::wait});
}

void Machine::schedule(std::uint32_t index, std::int64_t ns) {
  Queue& queue = queues_[index];
  if (queue.wake_ns == ns) return;
  queue.wake_ns = ns;
  calendar_.enter(ns, DueKind::queue, index);
}

void Machine::advance(std::int64_t to_ns) {
  while (!calendar_.is_empty() && calendar_.next().ns <= to_ns) step();
}

bool Machine::step() {
  if (calendar_.is_empty()) return false;
  Due due = calendar_.take();
  now_ns_ = std::max(now_ns_, due.ns);
  switch (due.kind()) {
    case DueKind::end:
      // All blocks that end now free their slots before any slot is taken.
      for (;;) {
        if (const std::uint32_t flight = blocks_.end(due, now_ns_); flight != kNone) end(flight);
        if (calendar_.is_empty() || calendar_.next().ns != now_ns_ || calendar_.next().kind() != DueKind::end) break;
        due = calendar_.take();
      }
      blocks_.distribute(now_ns_);
      break;
    case DueKind::queue:
      if (queues_[due.subject()].wake_ns != due.ns) return true;
      queues_[due.subject()].wake_ns = INT64_MAX;
      try_queue(due.subject());
      break;
    case DueKind::graph: {
      Client* const client = clients_[due.subject()];
      if (client == nullptr || client->graph_wake_ns != due.ns) return true;
      client->graph_wake_ns = INT64_MAX;
      try_graph(*client);
      break;
    }
    case DueKind::foreign:
      foreign(due.subject() == 0);
      break;
  }
  settle();
  return true;
}

void Machine::settle() {
  for (std::size_t i = 0; i < todo_.size(); ++i) {  // grows during the loop
    if ((todo_[i] & kGraphBit) != 0) {
      try_graph(*clients_[todo_[i] & ~kGraphBit]);
    } else {
      try_queue(todo_[i]);
    }
  }
  todo_.clear();
}

// Stops at the first packet that is not ready, even if later packets are of other streams: head-of-line blocking.
void Machine::try_queue(std::uint32_t index) {
  Queue& queue = queues_[index];
  while (queue.size() != 0 && !queue.awaits_event && !queue.awaits_residency) {
    const Packet packet = queue.front();
    // The front end fetches a packet even before the packet's dependencies are met.
    const std::int64_t fetched_ns = std::max(packet.visible_ns, queue.free_ns) + profile_.device.launch_ns;
    if (packet.kind == PacketKind::launch) {
      if (!try_launch(index, packet, fetched_ns)) return;
      queue.free_ns = now_ns_ + packet.client->works[packet.subject].held_ns;
      ++queue.head;
      continue;  // retires when it ends
    }
    if (fetched_ns > now_ns_) return schedule(index, fetched_ns);
    if (packet.kind == PacketKind::record) {
      if (!try_record(packet, static_cast<std::int32_t>(index))) return;
    } else if (!try_wait(index, packet, fetched_ns)) {
      return;
    }
    queue.free_ns = now_ns_;
    ++queue.head;
    --packet.client->streams[packet.stream].outstanding;
    retire(*packet.client);
  }
}

bool Machine::can_launch(const Work& work, std::uint32_t what, bool& awaits) {
  if (work.unit != Unit::kernel || resident_ < profile_.resident_kernels) return true;
  awaits = true;
  waiting_.push_back({profile_.priorities >= Priorities::order ? work.level : std::uint8_t{0}, waited_++, what});
  return false;
}

bool Machine::try_launch(std::uint32_t index, const Packet& packet, std::int64_t fetched_ns) {
  Queue& queue = queues_[index];
  Stream& stream = packet.client->streams[packet.stream];
  // The end of the running command retries; with engine queues an earlier command may still wait in another queue.
  if (stream.is_running || packet.sequence != stream.ended) return false;
  const std::int64_t gap_ns = profile_.device.stream_gap_ns;
  std::int64_t start_ns = std::max({fetched_ns, stream.ended_ns + gap_ns, stream.ready_ns});
  if (packet.has_barrier) {
    if (queue.running != 0) return false;
    start_ns = std::max(start_ns, queue.ended_ns + gap_ns);
  }
  const Work& work = packet.client->works[packet.subject];
  if (work.delayed_iteration.value_or(packet.number) == packet.number) start_ns += work.delay_ns;
  if (start_ns > now_ns_) {
    schedule(index, start_ns);
    return false;
  }
  if (!can_launch(packet.client->works[packet.subject], index, queue.awaits_residency)) return false;
  stream.is_running = true;
  ++queue.running;
  start(*packet.client, packet.subject, packet.number, packet.stream, static_cast<std::int32_t>(index));
  return true;
}

// Does not block the queue unless the profile says so: the event is attached to the command that runs on the stream.
bool Machine::try_record(const Packet& packet, std::int32_t queue) {
  Stream& stream = packet.client->streams[packet.stream];
  Event& event = packet.client->events[packet.subject];
  if (stream.is_running && profile_.record_blocks != 0) return false;  // the end of the running command retries
  event.instance = packet.number;
  event.queue = queue;
  if (stream.is_running) {
    event.next = stream.record;
    stream.record = packet.subject;
  } else {
    complete(*packet.client, event);
  }
  return true;
}

bool Machine::try_wait(std::uint32_t index, const Packet& packet, std::int64_t) {
  Event& event = packet.client->events[packet.subject];
  Queue& queue = queues_[index];
  if (static_cast<std::int32_t>(event.done - packet.number) < 0) {
    queue.awaits_event = true;
    queue.next_waiter = event.waiter;
    event.waiter = index;
    return false;
  }
  const auto& device = profile_.device;
  const bool is_own = event.queue == static_cast<std::int32_t>(index);
  const std::int64_t extra_ns =
      is_own ? device.event_gap_ns
             : switch_ns_[static_cast<std::size_t>(std::max<std::int64_t>(1, map_.busy_queues()))];
  Stream& stream = packet.client->streams[packet.stream];
  stream.ready_ns = std::max(stream.ready_ns, event.done_ns + device.stream_gap_ns + extra_ns);
  return true;
}

void Machine::complete(Client&, Event& event) {
  event.done = event.instance;
  event.done_ns = now_ns_;
  // In order of arrival, which is the reverse of the list's order.
  const std::size_t first = todo_.size();
  for (std::uint32_t queue = event.waiter; queue != kNone; queue = queues_[queue].next_waiter) {
    queues_[queue].awaits_event = false;
    todo_.push_back(queue);
  }
  std::reverse(todo_.begin() + static_cast<std::ptrdiff_t>(first), todo_.end());
  event.waiter = kNone;
}

std::int64_t Machine::duration_of(const Work& work) {
  if (work.is_hold && work.is_released) return 0;
  if (profile_.jitter == 0 || work.is_timed) return work.ns;
  // Lognormal with mean 1.
  const double sigma = std::sqrt(std::log1p(profile_.jitter * profile_.jitter));
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  const double normal = radius * std::cos(2 * std::numbers::pi * uniform());
  return static_cast<std::int64_t>(
      std::llround(static_cast<double>(work.ns) * std::exp(sigma * normal - sigma * sigma / 2)));
}

void Machine::start(Client& client, CommandId command, std::uint32_t iteration, StreamId stream, std::int32_t queue) {
  const Work& work = client.works[command];
  Flight flight;
  flight.client = &client;
  flight.work = &work;
  flight.command = command;
  flight.iteration = iteration;
  flight.stream = stream;
  flight.queue = queue;
  flight.block_ns = duration_of(work);
  if (Span* const span = client.span(command, iteration)) span->launched_ns = now_ns_;
  if (work.unit == Unit::kernel) {
    ++resident_;
    flight.waiting = work.blocks - work.taken;
    flight.next_block = work.taken;
    if (work.is_stoppable && work.is_released) {
      flight.taken = work.taken;
      Blocks::go_idle(flight);
    }
    blocks_.start(blocks_.add(flight), now_ns_);
    return;
  }
  // First come, first served: the start time is already known.
  auto& servers = engines_[static_cast<std::size_t>(work.unit)];
  auto& server = *std::min_element(servers.begin(), servers.end());
  const std::int64_t start_ns = std::max(now_ns_, server);
  server = start_ns + flight.block_ns;
  blocks_.run(blocks_.add(flight), start_ns, server);
}

// Writes a toil's record at its end and sets where the next launch of its job continues.
void Machine::report(Work& work, std::uint32_t stopped_at) {
  const std::uint32_t taken = stopped_at == kNone ? work.blocks : stopped_at;
  work.taken = taken == work.blocks ? 0 : taken;
  work.record[kToilTaken] = work.is_stoppable ? taken : work.units;
  work.record[kToilEnded] = now_ns_ / profile_.timer_ns * profile_.timer_ns;
  ++work.record[kToilLaunches];
}

void Machine::end(std::uint32_t id) {
  const Flight flight = blocks_[id];
  blocks_.remove(id);
  Client& client = *flight.client;
  IterationSpan& iteration = client.iterations[flight.iteration - client.first_iteration];
  iteration.ended_ns = std::max(iteration.ended_ns, now_ns_);
  if (Span* const span = client.span(flight.command, flight.iteration)) span->ended_ns = now_ns_;
  if (flight.work->record != nullptr) report(client.works[flight.command], flight.taken);
  if (flight.work->unit == Unit::kernel) {
    --resident_;
    if (!waiting_.empty()) {
      // The most urgent first if priorities apply, then in order of arrival.
      const auto next = std::min_element(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
        return a.level != b.level ? a.level > b.level : static_cast<std::int32_t>(a.order - b.order) < 0;
      });
      const std::uint32_t what = next->what;
      waiting_.erase(next);
      if ((what & kGraphBit) != 0) {
        clients_[what & ~kGraphBit]->awaits_residency = false;
      } else {
        queues_[what].awaits_residency = false;
      }
      todo_.push_back(what);
    }
  }
  if (flight.queue == kNoQueue) return end_node(client, flight.command);
  Queue& queue = queues_[static_cast<std::size_t>(flight.queue)];
  Stream& stream = client.streams[flight.stream];
  stream.is_running = false;
  stream.ended_ns = queue.ended_ns = now_ns_;
  --queue.running;
  --stream.outstanding;
  ++stream.ended;
  if (!is_engine_queue(flight.queue)) map_.end_command(flight.queue);
  retire(client);
  for (std::uint32_t event = stream.record; event != kNone; event = client.events[event].next)
    complete(client, client.events[event]);
  stream.record = kNone;
  todo_.push_back(static_cast<std::uint32_t>(flight.queue));
  if (!client.graph_packets.empty() && --client.unended == 0) {
    end_graph(client);
    todo_.push_back(client.id | kGraphBit);
  }
  if (profile_.engine_queues == 0) return;
  // The stream's next command may be at the head of any of these queues.
  if (stream.queue != flight.queue) todo_.push_back(static_cast<std::uint32_t>(stream.queue));
  for (std::size_t unit = 1; unit < kUnits; ++unit) {
    const auto engine = static_cast<std::uint32_t>(queue_of(stream, static_cast<Unit>(unit)));
    if (queues_[engine].size() != 0) todo_.push_back(engine);
  }
}

void Machine::look_at_flags(std::int64_t host_ns) {
  if (clients_with_holds_ == 0) return;
  // Events before the host's current time still see the old flags.
  advance(host_ns);
  for (Client* const client : clients_) {
    if (client == nullptr) continue;
    for (const CommandId id : client->holds) {
      Work& hold = client->works[id];
      // Acquire: pairs with the host's store.
      const std::int32_t flag = std::atomic_ref(*hold.flag).load(std::memory_order_acquire);
      const bool is_set = hold.is_stoppable ? flag > hold.record[kToilEpoch] : flag != 0;
      if (is_set == hold.is_released) continue;
      hold.is_released = is_set;
      if (!is_set) continue;
      if (hold.is_stoppable) {
        blocks_.stop_starting(*client, id);
      } else {
        blocks_.release(*client, id, host_ns);
      }
    }
  }
}

// Foreign load and idle periods alternate; both lengths are exponential, with means that give the share in the profile.
void Machine::foreign(bool begins) {
  const double slice_ns = static_cast<double>(profile_.foreign_slice_ns);
  const double mean_ns = begins ? slice_ns : slice_ns * (1 - profile_.foreign_load) / profile_.foreign_load;
  const std::int64_t until_ns = now_ns_ + 1 + static_cast<std::int64_t>(-mean_ns * std::log(1 - uniform()));
  if (begins) {
    blocks_.suspend(now_ns_, until_ns);
  } else {
    blocks_.resume(now_ns_);
  }
  calendar_.enter(until_ns, DueKind::foreign, begins ? 1 : 0);
}

double Machine::uniform() noexcept {
  // SplitMix64.
  std::uint64_t value = random_ += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return static_cast<double>((value ^ value >> 31) >> 11) * 0x1p-53;
}

}  // namespace weir::sim
