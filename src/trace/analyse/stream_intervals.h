// On which hardware queue a stream sat, and when. Reads timelines that name queues; infers nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// From the start of the first to the end of the last of consecutive commands of a stream that ran from one queue.
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
  // Every stream used one queue only; nothing where no stream did anything twice.
  std::optional<bool> is_fixed;
  std::size_t on_copy_engines = 0;  // commands left out: copy engines have queues of their own
  std::size_t without_queue = 0;    // commands left out: host functions, and what has no times
  std::string reason;               // why is_fixed is empty
};

StreamIntervals stream_intervals(const Timeline& timeline);

}  // namespace weir
