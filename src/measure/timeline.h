// When each command was enqueued, submitted, started and ended, and where. The one model that devices and importers
// fill and every analysis reads. Knows no device and no file format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

inline constexpr std::int64_t kNoTime = INT64_MIN;
inline constexpr std::int32_t kNoQueue = -1;
inline constexpr std::uint32_t kNoName = UINT32_MAX;
inline constexpr std::uint32_t kNoCall = UINT32_MAX;
// Ids from here on are queues of copy engines, which a stream uses besides the one of its kernels.
inline constexpr std::int32_t kCopyQueues = 1'000'000;

enum class SpanKind : std::uint8_t { kernel, collective, copy, memset, host };

// One command's way. Times are nanoseconds on one clock, or kNoTime where the source has none. Devices fill the host's
// monotonic clock; traces of others keep theirs.
struct Span {
  std::uint32_t command = 0;     // id within its step; of an imported command its place in the file
  std::uint32_t iteration = 0;   // counts from 0 in the traced pass
  std::uint32_t name = kNoName;  // index into Timeline::names
  std::uint32_t call = kNoCall;  // index into Timeline::calls: the host's call that submitted it
  std::uint64_t bytes = 0;       // of copies, memsets and collectives; 0 where unknown
  std::uint16_t stream = 0;      // index into Timeline::streams, where that is filled
  std::uint8_t role = 0;
  SpanKind kind = SpanKind::kernel;
  std::int32_t queue = kNoQueue;        // hardware queue, unique within the timeline
  std::int64_t enqueued_ns = kNoTime;   // given to a channel
  std::int64_t submitted_ns = kNoTime;  // the call to the driver began
  std::int64_t accepted_ns = kNoTime;   // the driver had it: the call returned, or it was written to its queue
  std::int64_t launched_ns = kNoTime;   // left its hardware queue
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
  std::int64_t seen_ns = kNoTime;  // the host knew that it had ended
};

// A process that submitted commands. Correlations and host clocks are its own.
struct TraceProcess {
  int rank = 0;
  std::string label;        // file or process, for the reader
  std::int32_t clock = -1;  // from 0 on: processes with the same number have one clock by construction
};

struct TraceDevice {
  std::uint16_t process = 0;
  std::int64_t id = 0;  // as the source has it
  std::string label;    // "GPU 3", "NVIDIA H200"
};

struct TraceStream {
  std::uint16_t device = 0;
  std::uint64_t id = 0;  // as the source has it
  std::string label;     // "stream 7"
};

struct TraceQueue {
  std::int32_t id = kNoQueue;  // as spans name it
  std::uint16_t device = 0;
  std::string label;  // "queue 16", "copy engine 1"
};

enum class CallKind : std::uint8_t { launch, copy, synchronize, record, wait, other };

// What a host thread asked the driver for.
struct HostCall {
  std::uint32_t name = kNoName;
  std::uint32_t thread = 0;  // as the source has it, folded to 32 bits
  std::uint64_t correlation = 0;
  std::uint16_t process = 0;
  CallKind kind = CallKind::other;
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
};

// `after` could not start before `before` had ended, by an event or an edge: indices into spans. Order within a stream
// goes without saying.
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

// What is known of a collective besides its span.
struct CollectiveFacts {
  std::uint32_t span = 0;
  CollectiveKind kind = CollectiveKind::unknown;
  std::uint32_t ranks = 0;  // 0 where unknown
  std::uint32_t group = kNoName;
  std::uint64_t bytes = 0;  // of the larger of input and output of one rank; 0 where unknown
};

// A stretch that the program named, on the host: "ProfilerStep#3".
struct TraceRange {
  std::uint32_t name = kNoName;
  std::uint16_t process = 0;
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
};

// What a reader could not use.
struct Dropped {
  std::string reason;
  std::uint64_t count = 0;
  std::string first;  // where: "rank0.json, byte 1234"
};

struct Timeline {
  std::vector<Span> spans;
  std::string source;           // how the times were taken, for the reader: "cpu workers' clock"
  bool has_exact_gaps = false;  // gaps between commands can be trusted (not inflated by the tracing itself)
  double clock_error_ns = 0;    // of device times against the host clock

  // Empty in what sessions return; filled by importers (trace/timeline_builder.h) and by run/describe_timeline.h.
  std::vector<std::string> names;
  std::vector<TraceProcess> processes;
  std::vector<TraceDevice> devices;
  std::vector<TraceStream> streams;
  std::vector<TraceQueue> queues;  // by id
  std::vector<HostCall> calls;     // by process, thread, start
  std::vector<Dependency> dependencies;
  bool has_dependencies = false;             // false: the source says nothing about waits, so nothing can be excluded
  std::vector<CollectiveFacts> collectives;  // by span
  std::vector<TraceRange> ranges;
  std::vector<Dropped> dropped;
  std::vector<std::string> notes;  // what the reader should know about this source
};

}  // namespace weir
