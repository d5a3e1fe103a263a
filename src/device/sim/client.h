// The simulated machine's state for one session: commands, streams, events and graphs as plain records, and their
// results. Filled by the session, driven by the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/device.h"
#include "device/graph_edges.h"
#include "device/plan.h"

namespace weir::sim {

inline constexpr std::uint32_t kNone = UINT32_MAX;

// Which part of the machine runs a command.
enum class Unit : std::uint8_t { kernel, to_device, to_host, on_device, host, link };
inline constexpr std::size_t kUnits = 6;

// A command with all lookups resolved.
struct Work {
  std::int64_t ns = 0;                             // kernels: of one block; others: in total
  std::int64_t delay_ns = 0;                       // that it is held up at the head of its queue
  std::optional<std::uint32_t> delayed_iteration;  // nothing: each
  std::int64_t held_ns = 0;                        // how long it occupies its queue, because it is several kernels
  std::uint32_t blocks = 1;
  std::uint32_t slots = 0;         // per block
  std::uint32_t most_at_once = 1;  // blocks of this launch that fit on the device
  Unit unit = Unit::kernel;
  std::uint8_t level = 0;  // priority
  bool is_timed = false;   // ends by a clock: neither scaled nor jittered
  bool is_hold = false;
  bool is_released = false;   // hold: the flag was seen; toil: it was asked to stop
  bool is_stoppable = false;  // toil: when asked to stop, it starts no more blocks; the next launch continues
  std::uint32_t blocks_per_multiprocessor = 1;
  double contention = 0;            // how much longer a block lasts beside others that fill the rest of the device
  std::int32_t* flag = nullptr;     // hold
  std::int32_t* moments = nullptr;  // probes: one record per block
  // For toil:
  std::int64_t* record = nullptr;  // the launch record of toil.h
  std::int32_t* done = nullptr;    // jobs completed, per unit; null if a block has several units
  std::int64_t units = 0;
  std::uint32_t taken = 0;  // if it is stoppable: units of the job that earlier launches have started
};

struct Stream {
  bool is_running = false;
  std::uint32_t outstanding = 0;  // packets that have not retired
  std::uint32_t launches = 0;     // submitted
  std::uint32_t ended = 0;        // of these launches
  std::int32_t queue = 0;
  std::int32_t number = 0;                // within its session
  std::int32_t home = 0;                  // the queue assigned at creation
  std::int32_t last_queue = kNoQueue;     // barrier 2: the queue of its last launch since it got a queue, and the
  std::uint64_t last_slot = 0;            // position of that launch there
  std::uint32_t record = kNone;           // events to complete when the running command ends, linked by Event::next
  std::int64_t ended_ns = INT64_MIN / 2;  // of its last command
  std::int64_t ready_ns = INT64_MIN / 2;  // earliest start that the awaited events allow
};

// Instances count from 1, in the order in which records are submitted; 0: never recorded.
struct Event {
  std::uint32_t submitted = 0;
  std::uint32_t done = 0;
  std::uint32_t instance = 0;    // of the record in progress
  std::uint32_t next = kNone;    // in Stream::record
  std::int32_t queue = 0;        // the queue that recorded it
  std::uint32_t waiter = kNone;  // queues whose head waits for it, linked by Queue::next_waiter
  std::int64_t done_ns = INT64_MIN / 2;
};

// A launched graph that waits to begin or is running.
struct GraphLaunch {
  std::uint32_t segment = 0;
  std::uint32_t iteration = 0;
  std::int64_t visible_ns = 0;
};

// A part of a graph that passes through queues.
struct GraphPacket {
  enum class Kind : std::uint8_t { wait, launch, record } kind = Kind::launch;
  std::uint32_t subject = 0;  // command or event
  StreamId stream = 0;
  Unit unit = Unit::kernel;
};

struct ReadyNode {
  CommandId command = 0;
  std::int64_t ready_ns = 0;
};

struct Client {
  std::uint32_t id = 0;     // index in the machine
  std::vector<Work> works;  // by command
  std::vector<Stream> streams;
  std::vector<Event> events;

  std::vector<GraphEdges> graphs;                       // by segment
  std::vector<std::vector<GraphPacket>> graph_packets;  // by segment; empty if nodes do not pass through queues
  std::vector<GraphLaunch> launches;
  std::size_t next_launch = 0;
  std::vector<std::uint32_t> missing;  // by command: predecessors that have not ended
  std::vector<ReadyNode> ready;        // of the running graph, in order
  std::size_t next_ready = 0;
  std::uint32_t unended = 0;                    // nodes; 0 if no graph runs
  std::int64_t graph_free_ns = INT64_MIN / 2;   // when its front end is free
  std::int64_t graph_ended_ns = INT64_MIN / 2;  // when the last graph ended
  std::int64_t graph_wake_ns = INT64_MAX;
  bool awaits_residency = false;

  std::uint64_t outstanding = 0;            // packets that have not retired
  std::int64_t retired_ns = INT64_MIN / 2;  // when the last packet retired
  std::vector<IterationSpan> iterations;    // since the last take_spans()
  std::uint32_t first_iteration = 0;        // the number of iterations[0]
  std::vector<Span> spans;                  // traced iterations x commands
  std::uint32_t traced_iterations = 0;
  std::vector<CommandId> holds;

  Span* span(CommandId command, std::uint32_t iteration) noexcept {
    return iteration < traced_iterations ? &spans[iteration * works.size() + command] : nullptr;
  }
};

}  // namespace weir::sim
