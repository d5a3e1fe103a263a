// What queues cost both ways: the gap between dependent kernels that hop from stream to stream, and the time that
// independent kernels lose because unrelated ones sit in front of them. By the moments that the kernels write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "kernel/moment.h"
#include "run/switch_cost.h"
#include "trace/analyse/queue_switch.h"

namespace weir {

struct SwitchRequest {
  int hops = 200;
  int repetitions = 5;
  std::int64_t stamp_ns = 2'000;       // of a hop
  std::int64_t parallel_ns = 500'000;  // of an independent kernel
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
  double ideal_ns = 0;     // one stream's kernels alone: what all of them would take beside each other
  double lost_ns_per_kernel() const { return (makespan_ns - ideal_ns) / kernels; }
};

struct StreamSwitch {
  int streams = 0;
  Known<Gaps> hops;           // every hop goes to the next stream
  Known<Gaps> graph;          // the same chain as a graph
  Known<Gaps> within_queue;   // hops between streams of one hardware queue; needs a timeline with queues
  Known<Gaps> across_queues;  // hops between hardware queues
  QueueSwitch timeline;       // the reading from gaps of a timeline, in which every second kernel stays on its stream
  SwitchCost controlled;      // the reading from how long whole chains take
  Known<Serialisation> serialisation;
  bool was_queued_ahead = true;  // false: the host was late, and gaps may be its
};
// The hops alone, on the clock that commands' durations are taken by: the timeline's where its gaps can be trusted (a
// kernel's start and end take a while that its own moments do not show), else by moments. Nothing where there are none.
std::optional<Gaps> measure_hop_gaps(Device& device, int streams, const SwitchRequest& request);
StreamSwitch measure_switch_gaps(Device& device, int streams, const SwitchRequest& request);

// The step of the clock that wrote them, as far as they show it: what divides all times between starts. 0 for fewer
// than two.
std::int64_t clock_step_ns(std::span<const Moment> moments);
// next.started - previous.ended along a chain; pairs that did not both happen are left out.
std::vector<double> gaps_between(std::span<const Moment> chain);
std::optional<Gaps> summarise_gaps(std::span<const double> gaps);

}  // namespace weir
