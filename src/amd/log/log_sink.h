// What the runtime's log (AMD_LOG_LEVEL) tells, event by event, for those who read it in one pass. Texts live until the
// call returns. Knows the log's meaning; no kernel trace and no debugfs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::amd {

// Where and when a line was written.
struct LogMoment {
  std::int64_t time_ns = INT64_MIN;  // CLOCK_MONOTONIC, printed in microseconds
  std::optional<int> pid;            // of the program's own namespace; only from level 4 on
  std::uint64_t tid = 0;             // a pthread_t; 0 where the line has none
  std::uint64_t line = 0;            // of the file, from 1
};

struct QueueCreated {
  LogMoment asked;            // "Number of allocated hardware queues"; time_ns is INT64_MIN where that line is missing
  LogMoment created;          // "Created SWq=... to map on HWq=..."
  std::uint64_t swq = 0;      // 0 where the log does not say it
  std::uint64_t hwq = 0;      // base of the ring; of the queue's object where `is_ring` is false
  bool is_ring = true;        // false: ROCm before 6.2 prints the object (hsa_queue_t*) in place of its ring
  std::uint64_t packets = 0;  // size of the ring
  int priority = 1;           // 0 low, 1 normal, 2 high
  bool is_cooperative = false;
};

struct QueueDeleted {
  LogMoment at;
  std::uint64_t hwq = 0;
};

// A stream begins or ceases to use a hardware queue.
struct QueueShared {
  enum class Change : std::uint8_t { acquired, selected, released };
  LogMoment at;
  Change change = Change::acquired;
  std::uint64_t hwq = 0;
  int count = 0;             // streams on it now, as the log says
  std::uint64_t stream = 0;  // of the call under way on this thread; 0 where it is not known (yet)
};

struct StreamChanged {
  LogMoment at;
  std::uint64_t stream = 0;
  bool is_created = true;       // else destroyed
  std::optional<int> priority;  // as HIP has it: -1 high, 0 normal, 1 low
  std::uint64_t hwq = 0;        // that the creating call acquired; 0 where it acquired none
};

// A packet that was written to a hardware queue.
struct Packet {
  enum class Kind : std::uint8_t { dispatch, barrier_and, barrier_or, barrier_value, other };
  LogMoment at;
  Kind kind = Kind::dispatch;
  std::uint64_t stream = 0;  // 0 where it is not known
  std::uint64_t swq = 0, hwq = 0;
  std::optional<std::uint32_t> id;  // ROCr's counter of queues, not KFD's id; not in ROCm 5
  std::uint16_t header = 0;
  std::array<std::uint32_t, 3> grid{}, workgroup{};  // in work-items; of dispatches
  std::string_view kernel;                           // empty where it is not known
  std::uint64_t completion_signal = 0;
  std::optional<std::uint64_t> read_index, write_index;
};

// A kernel that the log names without a packet: level 3 has no packets (ROCm 7.2: nor has level 4). Names that only
// describe a graph's nodes are not told.
struct KernelNamed {
  LogMoment at;
  std::uint64_t stream = 0;  // 0 where it is not known
  std::string_view kernel;
};

// A command that the runtime put into one of its own queues ("KernelExecution", "InternalMarker", "CopyBuffer" ...).
struct CommandEnqueued {
  LogMoment at;
  std::string_view kind;
  std::uint64_t stream = 0;  // 0 where the log does not say it
};

// A copy by the runtime's copy engines.
struct LoggedCopy {
  LogMoment at;
  std::optional<std::uint32_t> engine;  // mask of the engine; nothing where ROCr chooses
  std::uint64_t bytes = 0;
  std::uint64_t completion_signal = 0;
};

// A HIP call, told when it returned.
struct ApiCall {
  LogMoment begun;  // time_ns is INT64_MIN where the call's own line is missing
  LogMoment returned;
  std::string_view name;
  std::string_view status;   // "hipSuccess"
  std::uint64_t stream = 0;  // 0: the default stream, or none
};

struct LoggedError {
  LogMoment at;
  int level = 1;            // 0 fatal, 1 error, 2 warning
  bool is_queue = false;    // a queue aborted: "Callback: Queue 0x.. aborting with error"
  std::uint64_t queue = 0;  // which; 0 where it is not told
  std::string_view text;
};

// Calls of one HIP function that a block of the file held, for those who do not want each of them.
struct ApiCalls {
  std::string_view name;
  std::uint64_t begun = 0;        // lines "NAME ( ..."
  std::uint64_t returned = 0;     // lines "NAME: Returned ..."; some functions never write one
  std::uint64_t failed = 0;       // returned anything but hipSuccess and hipErrorNotReady
  std::string_view first_status;  // of the first failed one
};

// Reads nothing by default: those who want an event override its function. Events come in the order of the file, from
// the reader's own thread.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void on(const QueueCreated&) {}
  virtual void on(const QueueDeleted&) {}
  virtual void on(const QueueShared&) {}
  virtual void on(const StreamChanged&) {}
  virtual void on(const Packet&) {}
  virtual void on(const LoggedCopy&) {}
  virtual void on(const ApiCall&) {}
  virtual void on(const KernelNamed&) {}
  virtual void on(const CommandEnqueued&) {}
  virtual void on(const LoggedError&) {}
  // Each call costs time: most lines of a log are calls. A sink that says false gets their counts instead.
  virtual bool wants_calls() const { return true; }
  virtual void on(const ApiCalls&) {}
  // Grid, workgroup and completion signal of packets: 0 for a sink that says false.
  virtual bool wants_details() const { return true; }
  // Time goes back: the file was truncated, or another run begins.
  virtual void on_restart(std::uint64_t line) { (void)line; }
};

}  // namespace weir::amd
