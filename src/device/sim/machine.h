// The simulated machine: hardware queues with their front ends, engines, graphs, and the events of virtual time. Knows
// sessions as clients and commands as records; knows no step, no wall clock, and only packets from the host.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "device/sim/blocks.h"
#include "device/sim/calendar.h"
#include "device/sim/client.h"
#include "device/sim/mapping.h"
#include "device/sim/profile.h"

namespace weir::sim {

// One thread at a time. Time advances only when advance() or step() is called; the caller decides how far.
class Machine {
 public:
  static constexpr std::int64_t kStartNs = 1'000'000'000;

  explicit Machine(const SimProfile& profile);

  // The client's works, streams and graphs must be set up; its streams get their queues here. The client must not move
  // until closed.
  void open(Client& client);
  void close(Client& client) noexcept;
  std::size_t open_streams() const noexcept { return open_streams_; }

  // Makes the stream ready to take a packet from a host at that time; false if its queue is full then.
  bool admit(Client& client, StreamId stream, Unit unit, std::int64_t host_ns);
  // Each submits a packet to an admitted stream; `unit` is that of the command that the record or wait belongs to.
  void launch(Client& client, CommandId command, std::uint32_t iteration, StreamId stream, std::int64_t host_ns);
  void record(Client& client, EventId event, StreamId stream, Unit unit, std::int64_t host_ns);
  void wait(Client& client, EventId event, StreamId stream, Unit unit, std::int64_t host_ns);
  void launch_graph(Client& client, std::uint32_t segment, std::uint32_t iteration, std::int64_t host_ns);

  // Processes all events up to that time.
  void advance(std::int64_t to_ns);
  // Processes the next event; false if there is none.
  bool step();
  std::int64_t now_ns() const noexcept { return now_ns_; }
  // The time of the next event; INT64_MAX if there is none.
  std::int64_t next_ns() const noexcept { return calendar_.is_empty() ? INT64_MAX : calendar_.next().ns; }
  // Checks flags that the host may have set since the last call: holds whose flag is set end at the host's time.
  void look_at_flags(std::int64_t host_ns);

  std::uint32_t resident_kernels() const noexcept { return static_cast<std::uint32_t>(resident_); }
  std::int64_t free_slots() const noexcept { return blocks_.free_slots(); }

 private:
  enum class PacketKind : std::uint8_t { launch, record, wait };
  struct Packet {
    Client* client = nullptr;
    std::int64_t visible_ns = 0;
    std::uint32_t subject = 0;  // command or event
    std::uint32_t number = 0;   // iteration or instance
    StreamId stream = 0;
    PacketKind kind = PacketKind::launch;
    std::uint32_t sequence = 0;  // launch: number of earlier launches on its stream
    bool has_barrier = false;    // launch: waits for the end of all before it in its queue
  };
  struct Queue {
    std::vector<Packet> ring;
    std::uint64_t head = 0, tail = 0;
    std::int64_t free_ns = INT64_MIN / 2;   // when its front end has processed the previous packet
    std::int64_t wake_ns = INT64_MAX;       // entered in the calendar
    std::int64_t ended_ns = INT64_MIN / 2;  // the last command launched from here
    std::uint32_t running = 0;              // launched from here and not ended
    std::uint64_t barrier_end = 0;          // one past the last packet that has a barrier
    std::uint32_t next_waiter = kNone;
    bool awaits_event = false;
    bool awaits_residency = false;

    std::size_t size() const noexcept { return tail - head; }
    Packet& front() noexcept { return ring[head & (ring.size() - 1)]; }
    void push(const Packet& packet);
  };
  struct Waiting {
    std::uint8_t level;
    std::uint32_t order;
    std::uint32_t what;  // queue, or client with kGraphBit
  };
  static constexpr std::uint32_t kGraphBit = 0x80000000u;

  // The queue where a stream's command of that kind waits: the stream's own, or one of its engine's.
  std::int32_t queue_of(const Stream& stream, Unit unit) const noexcept;
  bool is_engine_queue(std::int32_t queue) const noexcept { return queue >= packet_queues(profile_); }
  // Gives a stream that becomes busy its queue, if mapping is dynamic.
  void take_queue(Stream& stream) noexcept;
  bool needs_barrier(const Stream& stream, std::int32_t queue) const noexcept;
  void push(Client& client, std::int32_t queue, const Packet& packet);
  void schedule(std::uint32_t queue, std::int64_t ns);
  void schedule_graph(Client& client, std::int64_t ns);
  void settle();
  void try_queue(std::uint32_t queue);
  bool try_launch(std::uint32_t queue, const Packet& packet, std::int64_t fetched_ns);
  bool try_wait(std::uint32_t queue, const Packet& packet, std::int64_t fetched_ns);
  bool try_record(const Packet& packet, std::int32_t queue);
  void try_graph(Client& client);
  bool begin_graph(Client& client);
  // False if the command must wait to become resident.
  bool can_launch(const Work& work, std::uint32_t what, bool& awaits);
  void start(Client& client, CommandId command, std::uint32_t iteration, StreamId stream, std::int32_t queue);
  void end(std::uint32_t flight);
  void report(Work& work, std::uint32_t stopped_at);
  void end_node(Client& client, CommandId command);
  void end_graph(Client& client);
  void complete(Client& client, Event& event);
  void retire(Client& client) noexcept {
    --client.outstanding;
    client.retired_ns = now_ns_;
  }
  std::int64_t duration_of(const Work& work);
  void foreign(bool begins);
  double uniform() noexcept;

  SimProfile profile_;
  Calendar calendar_;
  Blocks blocks_;
  StreamMap map_;
  std::int64_t now_ns_ = kStartNs;
  std::int64_t resident_ = 0;
  std::size_t open_streams_ = 0;
  std::vector<Queue> queues_;                              // those of streams, of graphs, of engines
  std::array<std::int64_t, kMaxStreams + 1> switch_ns_{};  // by queues in use
  std::vector<Client*> clients_;                           // by id
  std::array<std::vector<std::int64_t>, kUnits> engines_;  // by unit: when each engine is free
  std::vector<Waiting> waiting_;                           // to become resident
  std::uint32_t waited_ = 0;
  std::vector<std::uint32_t> todo_;  // queues, or clients with kGraphBit, that may be able to continue
  std::size_t clients_with_holds_ = 0;
  std::uint64_t random_ = 0;
};

}  // namespace weir::sim
