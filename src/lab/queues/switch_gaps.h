// Measures both costs of queues: the gap between dependent kernels that hop from stream to stream, and the time that
// independent kernels lose because unrelated ones are in front of them. Uses the moments that the kernels write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "kernel/moment.h"
#include "run/switch_cost.h"
#include "trace/analyse/queue_switch.h"

namespace weir {

struct SwitchRequest {
  int hops = 200;
  int repetitions = 5;
  std::int64_t stamp_ns = 2'000;       // duration of a hop
  std::int64_t parallel_ns = 500'000;  // duration of an independent kernel
  int depth = 4;                       // independent kernels per stream
};

struct Gaps {
  std::size_t count = 0;
  double p50_ns = 0, p90_ns = 0;
};

// Independent kernels, `depth` per stream, submitted stream by stream.
struct Serialisation {
  int kernels = 0;
  double makespan_ns = 0;  // the median of some repetitions
  double ideal_ns = 0;     // the time of one stream's kernels alone, which all would take with perfect concurrency
  double lost_ns_per_kernel() const { return (makespan_ns - ideal_ns) / kernels; }
};

struct StreamSwitch {
  int streams = 0;
  Known<Gaps> hops;           // every hop goes to the next stream
  Known<Gaps> graph;          // the same chain as a graph
  Known<Gaps> within_queue;   // hops between streams of one hardware queue; needs a timeline with queues
  Known<Gaps> across_queues;  // hops between hardware queues
  QueueSwitch timeline;       // computed from gaps of a timeline in which every second kernel stays on its stream
  SwitchCost controlled;      // computed from the durations of whole chains
  Known<Serialisation> serialisation;
  bool was_queued_ahead = true;  // false: the host was late, and gaps may be due to it
};
// Measures only the hops, on the clock that command durations use: the timeline's if its gaps are exact (a kernel's
// start and end take time that its own moments do not show), otherwise the moments'. Returns nothing if there are no
// gaps.
std::optional<Gaps> measure_hop_gaps(Device& device, int streams, const SwitchRequest& request);
// How much longer a hop to another stream of the same hardware queue takes than one within a stream.
Known<double> measure_event_gap(Device& device, int streams, const SwitchRequest& request);
StreamSwitch measure_switch_gaps(Device& device, int streams, const SwitchRequest& request);

// The step of the clock that wrote the moments, as far as they show it: the common divisor of all times between starts.
// 0 for fewer than two.
std::int64_t clock_step_ns(std::span<const Moment> moments);
// next.started - previous.ended along a chain; skips pairs that did not both happen.
std::vector<double> gaps_between(std::span<const Moment> chain);
std::optional<Gaps> summarise_gaps(std::span<const double> gaps);

}  // namespace weir
