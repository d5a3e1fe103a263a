// Which hardware queues streams used and when, when that changed, and which streams share a queue. Reads timelines that
// name queues; infers nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// Consecutive commands of a stream that ran from one queue, from the start of the first to the end of the last.
struct StreamInterval {
  std::uint16_t stream = 0;
  std::int32_t queue = kNoQueue;
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::size_t commands = 0;
};

struct StreamIntervals {
  std::vector<StreamInterval> intervals;             // by stream, then by time
  std::vector<std::vector<std::int32_t>> queues_of;  // by stream: every queue it used, in ascending order
  // Whether every stream used only one queue; empty where no stream has two commands.
  std::optional<bool> is_fixed;
  std::size_t on_copy_engines = 0;  // commands left out: copy engines have queues of their own
  std::size_t without_queue = 0;    // commands left out: host functions, and commands without times
  std::string reason;               // why is_fixed is empty
};

StreamIntervals stream_intervals(const Timeline& timeline);

inline constexpr std::size_t kMaxQueueChanges = 100;

struct QueueOfStream {
  std::int32_t queue = kNoQueue;
  std::size_t commands = 0;
};

struct StreamQueues {
  std::uint16_t stream = 0;
  std::vector<QueueOfStream> queues;  // by id
  std::size_t changes = 0;
};

struct QueueStreams {
  std::int32_t queue = kNoQueue;
  std::vector<std::uint16_t> streams;  // ascending; more than one: they share it
  std::size_t commands = 0;
};

struct QueueChange {
  std::int64_t at_ns = 0;  // start of the first command on the new queue
  std::uint16_t stream = 0;
  std::int32_t from = kNoQueue, to = kNoQueue;
};

struct QueueMap {
  std::vector<StreamQueues> streams;  // those that used any queue, by stream
  std::vector<QueueStreams> queues;   // by id
  std::vector<QueueChange> changes;   // the first kMaxQueueChanges, by time
  std::size_t change_count = 0;
  std::size_t shared_queues = 0;                       // used by more than one stream
  std::size_t sharing_streams = 0;                     // streams on any of those
  std::optional<bool> is_fixed;                        // as in StreamIntervals
  std::size_t on_copy_engines = 0, without_queue = 0;  // commands left out
  std::string reason;                                  // why there is nothing, or why is_fixed is empty
};

QueueMap queue_map(const Timeline& timeline);

}  // namespace weir
