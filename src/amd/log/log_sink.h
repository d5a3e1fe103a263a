// Events of the runtime's log (AMD_LOG_LEVEL), for code that reads it in one pass. String views are valid until the
// call returns. Knows the log's meaning, but no kernel trace and no debugfs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::amd {

// Where and when a line was logged.
struct LogMoment {
  std::int64_t time_ns = INT64_MIN;  // CLOCK_MONOTONIC, printed in microseconds
  std::optional<int> pid;            // in the program's own namespace; only from level 4 on
  std::uint64_t tid = 0;             // a pthread_t; 0 if the line has none
  std::uint64_t line = 0;            // line number in the file, from 1
};

struct QueueCreated {
  LogMoment asked;            // "Number of allocated hardware queues"; time_ns is INT64_MIN if that line is missing
  LogMoment created;          // "Created SWq=... to map on HWq=..."
  std::uint64_t swq = 0;      // 0 if not logged
  std::uint64_t hwq = 0;      // base address of the ring, or of the queue object if `is_ring` is false
  bool is_ring = true;        // false: ROCm before 6.2 prints the object (hsa_queue_t*) instead of its ring
  std::uint64_t packets = 0;  // size of the ring
  int priority = 1;           // 0 low, 1 normal, 2 high
  bool is_cooperative = false;
};

struct QueueDeleted {
  LogMoment at;
  std::uint64_t hwq = 0;
};

// A stream starts or stops using a hardware queue.
struct QueueShared {
  enum class Change : std::uint8_t { acquired, selected, released };
  LogMoment at;
  Change change = Change::acquired;
  std::uint64_t hwq = 0;
  int count = 0;             // streams on it now, according to the log
  std::uint64_t stream = 0;  // of the current call on this thread; 0 if unknown or not known yet
};

struct StreamChanged {
  LogMoment at;
  std::uint64_t stream = 0;
  bool is_created = true;       // false: destroyed
  std::optional<int> priority;  // HIP's numbering: -1 high, 0 normal, 1 low
  std::uint64_t hwq = 0;        // acquired by the creating call; 0 if it acquired none
};

// A packet that was written to a hardware queue.
struct Packet {
  enum class Kind : std::uint8_t { dispatch, barrier_and, barrier_or, barrier_value, other };
  LogMoment at;
  Kind kind = Kind::dispatch;
  std::uint64_t stream = 0;  // 0 if unknown
  std::uint64_t swq = 0, hwq = 0;
  std::optional<std::uint32_t> id;  // ROCr's queue counter, not KFD's id; absent in ROCm 5
  std::uint16_t header = 0;
  std::array<std::uint32_t, 3> grid{}, workgroup{};  // in work-items; only for dispatches
  std::string_view kernel;                           // empty if unknown
  std::uint64_t completion_signal = 0;
  std::optional<std::uint64_t> read_index, write_index;
};

// A kernel that the log names without a packet: level 3 has no packets (ROCm 7.2: level 4 has none either). Names that
// only describe the nodes of a graph are not reported.
struct KernelNamed {
  LogMoment at;
  std::uint64_t stream = 0;  // 0 if unknown
  std::string_view kernel;
};

// A command that the runtime put into one of its own queues ("KernelExecution", "InternalMarker", "CopyBuffer" ...).
struct CommandEnqueued {
  LogMoment at;
  std::string_view kind;
  std::uint64_t stream = 0;  // 0 if not logged
};

// A copy by the copy engines.
struct LoggedCopy {
  LogMoment at;
  std::optional<std::uint32_t> engine;  // engine mask; nothing if ROCr chooses
  std::uint64_t bytes = 0;
  std::uint64_t completion_signal = 0;
};

// A HIP call, reported when it returns.
struct ApiCall {
  LogMoment begun;  // time_ns is INT64_MIN if the line of the call itself is missing
  LogMoment returned;
  std::string_view name;
  std::string_view status;   // "hipSuccess"
  std::uint64_t stream = 0;  // 0: the default stream, or none
};

struct LoggedError {
  LogMoment at;
  int level = 1;            // 0 fatal, 1 error, 2 warning
  bool is_queue = false;    // a queue aborted: "Callback: Queue 0x.. aborting with error"
  std::uint64_t queue = 0;  // its address; 0 if not logged
  std::string_view text;
};

// Counts of the calls to one HIP function within one block of the file, for sinks that do not need each call.
struct ApiCalls {
  std::string_view name;
  std::uint64_t begun = 0;        // lines "NAME ( ..."
  std::uint64_t returned = 0;     // lines "NAME: Returned ..."; some functions never write one
  std::uint64_t failed = 0;       // returned anything but hipSuccess and hipErrorNotReady
  std::string_view first_status;  // of the first failed call
};

// Ignores all events by default; a sink overrides the functions it needs. Events arrive in file order, on the reader's
// own thread.
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
  // Most lines of a log are calls, and each callback costs time. A sink that returns false gets counts instead.
  virtual bool wants_calls() const { return true; }
  virtual void on(const ApiCalls&) {}
  // If a sink returns false, grid, workgroup and completion signal of packets are 0.
  virtual bool wants_details() const { return true; }
  // The time went back: the file was truncated, or another run begins.
  virtual void on_restart(std::uint64_t line) { (void)line; }
};

}  // namespace weir::amd
