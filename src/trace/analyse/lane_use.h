// How busy each stream and hardware queue was, and how much work was pending on it over time. Reads the timeline of one
// device; host functions are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

inline constexpr std::size_t kBacklogBuckets = 200;
inline constexpr std::size_t kMaxBacklogSeries = 64;

// Commands that the host had handed over (accepted by the driver, or submitted where that is not known) and that had
// not ended. A running command counts even where the clocks disagree.
struct Backlog {
  std::size_t commands = 0;  // those that have such a time
  std::size_t peak = 0;
  std::int64_t peak_ns = 0;  // when it was first reached
  double mean = 0;           // over the device's span
  // Equal buckets of LaneUses::bucket_ns from LaneUses::first_ns on (the last may be shorter); empty for lanes beyond
  // kMaxBacklogSeries.
  std::vector<std::uint32_t> max_in_bucket;
  std::vector<float> mean_in_bucket;
};

struct LaneUse {
  std::int32_t lane = 0;  // a stream's index, or a queue's id
  std::size_t commands = 0;
  double busy_ns = 0;                      // union
  double utilisation = 0;                  // busy over the device's span
  std::int64_t first_ns = 0, last_ns = 0;  // first start, last end
  std::optional<Backlog> backlog;          // empty where none of its commands has a time of submission
};

struct LaneUses {
  std::int64_t first_ns = 0, last_ns = 0;  // of the device
  double bucket_ns = 0;
  std::vector<LaneUse> streams;    // by stream
  std::vector<LaneUse> queues;     // by id; empty where the source names none
  std::optional<Backlog> device;   // all lanes together
  std::size_t without_queue = 0;   // commands of the device whose queue is not known
  std::size_t without_submit = 0;  // commands left out of backlogs
  std::string reason;              // why there are no lanes, or no backlog
};

LaneUses lane_use(const Timeline& timeline);

}  // namespace weir
