// How much a device takes before something waits: launches behind a held kernel, kernels at the same time. By
// experiment; asks the device for nothing but to run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"

namespace weir {

// Launches that one stream takes behind a held kernel before submit() makes the host wait.
struct QueueDepth {
  Known<int> launches;
  int tried = 0;
  std::vector<int> found;                 // by repetition
  std::optional<std::int64_t> waited_ns;  // that the first call beyond took, in the first repetition
};
QueueDepth measure_queue_depth(Device& device, int most_launches);

// One call of submit() by the session's clock.
struct SubmitCall {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
};
// True for a call that took most of the time that was left until the held kernel gave up: it waited for that.
bool waited_for_hold(const SubmitCall& call, std::int64_t hold_ends_ns);

// Kernels of one block each, on a stream each, that run at the same time.
struct ResidentLimit {
  struct Point {
    int kernels = 0;
    std::int64_t makespan_ns = 0;  // the shortest of some repetitions
  };
  Known<int> kernels;
  int tried = 0;
  int most_at_once = 0;  // ever seen by their own moments
  std::int64_t duration_ns = 0;
  std::vector<Point> points;  // ascending; the last one within 1.5 durations and the first one beyond are among them
};
ResidentLimit measure_resident_limit(Device& device, int most_streams);

// The largest count in `points` that takes less than 1.5 durations, if all below it do as well.
std::optional<int> largest_at_once(std::span<const ResidentLimit::Point> points, std::int64_t duration_ns);

}  // namespace weir
