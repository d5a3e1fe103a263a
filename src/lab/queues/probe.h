// How many hardware queues there are and who shares them, by behaviour alone: holds known streams and watches whom that
// stops. Needs no profiler and no vendor's word. docs/queues.md explains the inference.
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
  round_robin,       // at its creation a stream gets the next queue, and keeps it
  least_referenced,  // at its creation a stream gets the queue with the fewest streams, and keeps it
  fixed,             // a stream keeps its queue, in no order that we know
  rotating,          // a stream that becomes busy takes the next queue
  load_based,        // a stream that becomes busy takes a free queue while there is one
};
std::string_view name_of(MappingPolicy policy);
std::string_view in_words(MappingPolicy policy);
// Whether a stream keeps its queue for life, so that there is a map.
constexpr bool is_static(MappingPolicy policy) {
  return policy == MappingPolicy::round_robin || policy == MappingPolicy::least_referenced ||
         policy == MappingPolicy::fixed || policy == MappingPolicy::one_queue;
}

struct ProbeOptions {
  int streams = 40;           // a count beyond streams - 1 cannot be seen
  double confidence = 0.999;  // of every verdict that a stream is stuck
  std::uint64_t seed = 1;     // of the order in which streams are marked
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::string_view phase, int done, int total)> progress;
};

// What nobody held up looks like, and with it how much a verdict is worth.
struct ProbeBaseline {
  int marks = 0;
  int late = 0;                     // beyond the window though nothing was held
  int missing = 0;                  // of them, even after the grace that every verdict gives
  int stretched = 0;                // ran for twice the time that it asked for, or longer
  int shrunk = 0;                   // seems to have run for less than half of it, which only a coarse clock shows
  double median_ns = 0;             // from the call to the host seeing the end
  std::int64_t window_ns = 0;       // a mark that is not back after this long is stuck
  double late_probability = 1;      // of one mark, at most (95 %)
  int repetitions = 0;              // that make a verdict certain
  std::int64_t granularity_ns = 0;  // of the device's clock, as moments show it
};

struct QueueProbe {
  MappingPolicy policy = MappingPolicy::unknown;
  std::string reason;         // why the policy or the count is not known, or what limits them
  std::optional<int> queues;  // that these streams share
  bool is_lower_bound = false;
  int streams = 0;  // probed
  // Whether recording an event behind a running kernel stops the queue, as a kernel there does; nothing: not known.
  std::optional<bool> record_blocks;
  std::vector<int> queue_of_stream;  // static policies: numbered in the order in which streams show them
  // Share of the other streams that is stuck while k are held; in the order in which it was tried.
  struct Saturation {
    int held = 0;
    int stuck = 0, marked = 0;
  };
  std::vector<Saturation> saturation;
  ProbeBaseline baseline;
  double confidence = 0;  // reached
  int trials = 0;
  int spoilt = 0;               // trials in which a hold ended too early; repeated
  std::int64_t elapsed_ns = 0;  // on the session's clock
};

// Rejects fewer than 2 streams. Never hangs: every hold has a limit.
QueueProbe probe_queues(Device& device, const ProbeOptions& options);

}  // namespace weir
