#include "trace/analyse/breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

double total(const TimeIntervals& intervals) noexcept { return static_cast<double>(total_ns(intervals)); }

void add_iterations(const Timeline& timeline, std::span<const std::uint32_t> order, std::span<const TraceRange> ranges,
                    Breakdown& to) {
  const Iterations placed = place_in_iterations(timeline, order, ranges);
  to.iteration_count = placed.numbers.size();
  if (to.iteration_count == 0) return;
  to.outside_iterations = static_cast<std::size_t>(std::count(placed.of.begin(), placed.of.end(), kNoIteration));
  const std::vector<std::vector<std::uint32_t>> own = placed.apart(order, kMaxIterations);
  for (std::size_t i = 0; i < own.size(); ++i) {
    IterationTimes& iteration = to.iterations.emplace_back();
    iteration.number = placed.numbers[i];
    if (!ranges.empty()) iteration.name = ranges[i].name;
    iteration.commands = own[i].size();
    if (!own[i].empty()) iteration.times = busy_times(timeline, own[i]);
  }
}

}  // namespace

BusyTimes busy_times(const Timeline& timeline, std::span<const std::uint32_t> order) {
  TimeIntervals compute, communication, copy, overlapped;
  BusyTimes times;
  times.first_ns = timeline.spans[order.front()].started_ns;
  times.last_ns = times.first_ns;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    const TimeInterval stretch{span.started_ns, span.ended_ns};
    append(span.kind == SpanKind::kernel ? compute : span.kind == SpanKind::collective ? communication : copy, stretch);
    // The part before the latest end so far overlaps at least one other command, because those started earlier.
    append(overlapped, {stretch.from_ns, std::min(stretch.to_ns, times.last_ns)});
    times.last_ns = std::max(times.last_ns, span.ended_ns);
  }
  const TimeIntervals compute_or_copy = unite(compute, copy);
  times.span_ns = length_between(times.first_ns, times.last_ns);
  times.busy_ns = total(unite(compute_or_copy, communication));
  times.idle_ns = times.span_ns - times.busy_ns;
  times.compute_ns = total(compute);
  times.communication_ns = total(communication);
  times.copy_ns = total(copy);
  times.hidden_communication_ns = total(intersect(communication, compute));
  times.exposed_communication_ns = times.communication_ns - times.hidden_communication_ns;
  times.alone_communication_ns = total(subtract(communication, compute_or_copy));
  times.hidden_copy_ns = total(intersect(copy, compute));
  times.overlapped_ns = total(overlapped);
  return times;
}

Breakdown breakdown(const Timeline& timeline, std::span<const TraceRange> iterations) {
  Breakdown found;
  std::vector<bool> has_stream(std::size_t{UINT16_MAX} + 1);
  std::set<std::int32_t> queues;
  std::int32_t last_queue = kNoQueue;
  for (const Span& span : timeline.spans) {
    if (!is_timed(span)) {
      ++found.without_times;
      continue;
    }
    KindTotal& kind = found.kinds[static_cast<std::size_t>(span.kind)];
    ++kind.commands;
    kind.sum_ns += length_between(span.started_ns, span.ended_ns);
    if (span.kind == SpanKind::host) continue;
    has_stream[span.stream] = true;
    if (span.queue != last_queue && span.queue != kNoQueue) queues.insert(span.queue);
    last_queue = span.queue;
  }
  found.streams = static_cast<std::size_t>(std::count(has_stream.begin(), has_stream.end(), true));
  found.queues = static_cast<std::size_t>(std::distance(queues.begin(), queues.lower_bound(kCopyQueues)));
  found.copy_queues = queues.size() - found.queues;
  const std::vector<std::uint32_t> order = device_work_by_start(timeline);
  found.commands = order.size();
  if (order.empty()) {
    found.reason = fmt::format("no command of the device has times: {}", timeline.source);
    return found;
  }
  found.times = busy_times(timeline, order);
  add_iterations(timeline, order, iterations, found);
  return found;
}

}  // namespace weir
