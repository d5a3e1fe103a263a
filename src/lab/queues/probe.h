// Finds out how many hardware queues there are and which streams share them, by behaviour alone: holds known streams
// and sees which streams stall. Needs no profiler and no vendor information. docs/queues.md explains the inference.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace weir {

enum class MappingPolicy : std::uint8_t {
  unknown,
  one_queue,         // every stream shares the only queue: all policies are the same
  unshared,          // no two of the streams ever share: there are at least as many queues as streams
  round_robin,       // a stream gets the next queue at creation, and keeps it
  least_referenced,  // a stream gets the queue with the fewest streams at creation, and keeps it
  fixed,             // a stream keeps its queue, in no known order
  rotating,          // a stream that becomes busy takes the next queue
  load_based,        // a stream that becomes busy takes a free queue while there is one
};
std::string_view name_of(MappingPolicy policy);
std::string_view in_words(MappingPolicy policy);
// Whether a stream keeps its queue for life, so that a map exists.
constexpr bool is_static(MappingPolicy policy) {
  return policy == MappingPolicy::round_robin || policy == MappingPolicy::least_referenced ||
         policy == MappingPolicy::fixed || policy == MappingPolicy::one_queue;
}

struct ProbeOptions {
  int streams = 40;           // at most streams - 1 queues can be counted
  double confidence = 0.999;  // of every verdict that a stream is stuck
  std::uint64_t seed = 1;     // of the order in which streams are marked
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::string_view phase, int done, int total)> progress;
};

// The behaviour of streams while nothing is held, and how reliable a verdict is.
struct ProbeBaseline {
  int marks = 0;
  int late = 0;                     // marks beyond the window although nothing was held
  int missing = 0;                  // of these, not back even after the grace period of every verdict
  int stretched = 0;                // ran for at least twice the requested time
  int shrunk = 0;                   // seemed to run for less than half of it, which only happens with a coarse clock
  double median_ns = 0;             // from the call until the host sees the end
  std::int64_t window_ns = 0;       // a mark that is not back after this long is stuck
  double late_probability = 1;      // of one mark, upper bound (95 %)
  int repetitions = 0;              // needed for a certain verdict
  std::int64_t granularity_ns = 0;  // of the device's clock, as seen in moments
};

struct QueueProbe {
  MappingPolicy policy = MappingPolicy::unknown;
  std::string reason;         // why the policy or the count is unknown, or what limits them
  std::optional<int> queues;  // shared by these streams
  bool is_lower_bound = false;
  int streams = 0;  // probed
  // Whether recording an event after a running kernel blocks the queue, as a kernel there does; nothing: unknown.
  std::optional<bool> record_blocks;
  // Whether a running kernel alone, with nothing after it in its stream, stops its queue; nothing: unknown.
  std::optional<bool> barrier;
  std::vector<int> queue_of_stream;  // static policies: numbered in the order of first use
  // The share of the other streams that is stuck while k are held, in the order of the trials.
  struct Saturation {
    int held = 0;
    int stuck = 0, marked = 0;
  };
  std::vector<Saturation> saturation;
  ProbeBaseline baseline;
  double confidence = 0;  // as reached
  int trials = 0;
  int spoilt = 0;               // trials in which a hold ended too early; repeated
  std::int64_t elapsed_ns = 0;  // on the session's clock
};

// Rejects fewer than 2 streams. Never hangs: every hold has a time limit.
QueueProbe probe_queues(Device& device, const ProbeOptions& options);

}  // namespace weir
