// When each command was enqueued, submitted, started and ended, and where. The one model that devices and importers
// fill and every analysis reads. Knows no device and no file format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

inline constexpr std::int64_t kNoTime = INT64_MIN;
inline constexpr std::int32_t kNoQueue = -1;
// Ids from here on are queues of copy engines, which a stream uses besides the one of its kernels.
inline constexpr std::int32_t kCopyQueues = 1'000'000;

// One command's way. Times are host-monotonic nanoseconds, or kNoTime where the source has none.
struct Span {
  std::uint32_t command = 0;    // id within its step
  std::uint32_t iteration = 0;  // counts from 0 in the traced pass
  std::uint16_t stream = 0;
  std::uint8_t role = 0;
  std::int32_t queue = kNoQueue;  // hardware queue
  std::int64_t enqueued_ns = kNoTime;
  std::int64_t submitted_ns = kNoTime;
  std::int64_t launched_ns = kNoTime;  // left its hardware queue
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
};

struct Timeline {
  std::vector<Span> spans;
  std::string source;           // how the times were taken, for the reader: "cpu workers' clock"
  bool has_exact_gaps = false;  // gaps between commands can be trusted (not inflated by the tracing itself)
  double clock_error_ns = 0;    // of device times against the host clock
};

}  // namespace weir
