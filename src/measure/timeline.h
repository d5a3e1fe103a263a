// When and where each command was enqueued, submitted, started and ended. The one model that devices and importers fill
// and every analysis reads. Knows no device and no file format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir {

inline constexpr std::int64_t kNoTime = INT64_MIN;
inline constexpr std::int32_t kNoQueue = -1;
inline constexpr std::uint32_t kNoName = UINT32_MAX;
inline constexpr std::uint32_t kNoCall = UINT32_MAX;
inline constexpr std::uint32_t kNoOperation = UINT32_MAX;
inline constexpr std::uint32_t kNoModule = UINT32_MAX;
// Ids from here on are queues of copy engines, which a stream uses in addition to the queue of its kernels.
inline constexpr std::int32_t kCopyQueues = 1'000'000;

enum class SpanKind : std::uint8_t { kernel, collective, copy, memset, host };

// The life of one command. Times are nanoseconds on one clock, or kNoTime if the source has none. Devices use the
// host's monotonic clock; imported traces keep theirs.
struct Span {
  std::uint32_t command = 0;     // id within its step; for an imported command, its position in the file
  std::uint32_t iteration = 0;   // counts from 0 in the traced pass
  std::uint32_t name = kNoName;  // index into Timeline::names
  std::uint32_t call = kNoCall;  // index into Timeline::calls: the host call that submitted it
  std::uint64_t bytes = 0;       // of copies, memsets and collectives; 0 if unknown
  std::uint16_t stream = 0;      // index into Timeline::streams, if that is filled
  std::uint8_t role = 0;
  SpanKind kind = SpanKind::kernel;
  std::int32_t queue = kNoQueue;        // hardware queue, unique within the timeline
  std::uint32_t blocks = 0;             // of a kernel's grid; 0 if unknown
  std::uint16_t threads = 0;            // of a block; 0 if unknown
  std::int64_t enqueued_ns = kNoTime;   // pushed into a channel
  std::int64_t submitted_ns = kNoTime;  // the call to the driver began
  std::int64_t accepted_ns = kNoTime;   // the driver accepted it: the call returned, or it was written to its queue
  std::int64_t launched_ns = kNoTime;   // left its hardware queue
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
  std::int64_t seen_ns = kNoTime;  // the host learned that it had ended
};

// A process that submitted commands. Each has its own correlations and host clock.
struct TraceProcess {
  int rank = 0;
  std::string label;        // file or process, for the reader
  std::int32_t clock = -1;  // 0 or more: processes with the same number share one clock by construction
};

struct TraceDevice {
  std::uint16_t process = 0;
  std::int64_t id = 0;                 // from the source
  std::string label;                   // "GPU 3", "NVIDIA H200"
  std::string model;                   // "NVIDIA H200"; empty if unknown
  std::uint32_t multiprocessors = 0;   // 0 if unknown
  std::uint32_t resident_threads = 0;  // at most, on a multiprocessor; 0 if unknown
};

struct TraceStream {
  std::uint16_t device = 0;
  std::uint64_t id = 0;                  // from the source
  std::string label;                     // "stream 7"
  std::optional<std::int32_t> priority;  // as the source has it: on CUDA the lower number goes first
};

struct TraceQueue {
  std::int32_t id = kNoQueue;  // the id in spans
  std::uint16_t device = 0;
  std::string label;  // "queue 16", "copy engine 1"
};

enum class CallKind : std::uint8_t { launch, copy, synchronize, record, wait, other };

// A host thread's call to the driver.
struct HostCall {
  std::uint32_t name = kNoName;
  std::uint32_t thread = 0;  // from the source, folded to 32 bits
  std::uint64_t correlation = 0;
  std::uint16_t process = 0;
  CallKind kind = CallKind::other;
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
  std::uint32_t operation = kNoOperation;  // index into Timeline::operations: the innermost that made it
  std::uint32_t line = kNoName;            // of the program: "train.py(45): step"
  bool is_first_of_operation = false;      // the program called the operator, which had made no call to the driver yet
};

// What a step does meanwhile, in the words of training.
enum class Phase : std::uint8_t { unknown, forward, backward, optimizer };

// A part of a model: "Linear_0" in "Block_3". Parents come before their parts.
struct TraceModule {
  std::uint32_t name = kNoName;
  std::uint32_t parent = kNoModule;  // index into Timeline::modules
};

// What calls have in common that an operator of a framework made: all of the same name, shapes, module and phase are
// one.
struct Operation {
  std::uint32_t name = kNoName;      // "aten::mm"; kNoName: a module or a phase made the call itself
  std::uint32_t shapes = kNoName;    // of its inputs: "bf16 [8, 1024], bf16 [1024, 4096]"; kNoName if unknown
  std::uint32_t module = kNoModule;  // index into Timeline::modules
  Phase phase = Phase::unknown;
  bool operator==(const Operation&) const = default;
};

// `after` could not start before `before` had ended, because of an event or an edge: indices into spans. Order within a
// stream is implied.
struct Dependency {
  std::uint32_t before = 0, after = 0;
};

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  send_receive,
  barrier,
  unknown
};

// Facts about a collective beyond its span.
struct CollectiveFacts {
  std::uint32_t span = 0;
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t ranks = 0;  // 0 if unknown
  std::uint32_t group = kNoName;
  std::uint64_t bytes = 0;  // the larger of input and output of one rank; 0 if unknown
  // Counts the collectives of a group, from 1, equally on all ranks; 0 if unknown.
  std::uint64_t sequence = 0;
};

// A range that the program named on the host: "ProfilerStep#3".
struct TraceRange {
  std::uint32_t name = kNoName;
  std::uint16_t process = 0;
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
};

// What a program's allocator had of a device's memory once it had allocated or freed a piece.
struct MemoryChange {
  std::uint16_t device = 0;  // index into Timeline::devices
  std::int64_t at_ns = kNoTime;
  std::int64_t bytes = 0;  // of the piece; below 0: it was freed
  std::uint64_t allocated_bytes = 0;
  std::uint64_t reserved_bytes = 0;        // from the driver
  std::uint32_t operation = kNoOperation;  // index into Timeline::operations: the innermost that did it
  std::uint32_t line = kNoName;            // of the program
};

// Records that could not be used.
struct Dropped {
  std::string reason;
  std::uint64_t count = 0;
  std::string first;  // where: "rank0.json, byte 1234"
};

struct Timeline {
  std::vector<Span> spans;
  std::string source;           // how the times were measured, for the reader: "cpu workers' clock"
  bool has_exact_gaps = false;  // gaps between commands are reliable (not inflated by the tracing itself)
  double clock_error_ns = 0;    // of device times relative to the host clock

  // Empty in timelines from sessions; filled by importers (trace/timeline_builder.h) and by run/describe_timeline.h.
  std::vector<std::string> names;
  std::vector<TraceProcess> processes;
  std::vector<TraceDevice> devices;
  std::vector<TraceStream> streams;
  std::vector<TraceQueue> queues;  // by id
  std::vector<HostCall> calls;     // by process, thread, start
  std::vector<Dependency> dependencies;
  bool has_dependencies = false;             // false: the source does not record waits, so none can be excluded
  std::vector<CollectiveFacts> collectives;  // by span
  std::vector<TraceModule> modules;
  std::vector<Operation> operations;
  bool has_operations = false;  // operators were read, so that calls without one were made by none
  std::vector<TraceRange> ranges;
  std::vector<MemoryChange> memory;  // by time
  std::vector<Dropped> dropped;
  std::vector<std::string> notes;  // what the reader should know about this source
};

}  // namespace weir
