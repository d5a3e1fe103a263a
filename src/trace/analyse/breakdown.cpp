#include "trace/analyse/breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "trace/device_spans.h"

namespace weir {
namespace {

double total(const TimeIntervals& intervals) noexcept { return static_cast<double>(total_ns(intervals)); }

TimeIntervals union_of(const Timeline& timeline, std::span<const std::uint32_t> order, bool takes_copies) {
  TimeIntervals made;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    if (span.kind == SpanKind::kernel || (takes_copies && span.kind != SpanKind::collective))
      append(made, {span.started_ns, span.ended_ns});
  }
  return made;
}

std::vector<CopyUse> copies_of(const Timeline& timeline, const DeviceTimes& times,
                               std::span<const std::uint32_t> order) {
  std::map<std::pair<std::uint32_t, SpanKind>, CopyUse> by_name;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    if (span.kind != SpanKind::copy && span.kind != SpanKind::memset) continue;
    CopyUse& use = by_name[{span.name, span.kind}];
    use.name = span.name;
    use.kind = span.kind;
    ++use.commands;
    use.bytes += span.bytes;
    use.total_ns += length_between(span.started_ns, span.ended_ns);
    use.alone_ns += times.alone_ns(index);
  }
  std::vector<CopyUse> found;
  for (const auto& [key, use] : by_name) found.push_back(use);
  std::stable_sort(found.begin(), found.end(),
                   [](const CopyUse& a, const CopyUse& b) { return a.alone_ns > b.alone_ns; });
  return found;
}

void add_iterations(const Timeline& timeline, const DeviceTimes& times, std::span<const std::uint32_t> order,
                    std::span<const TraceRange> ranges, Breakdown& to) {
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
    if (!own[i].empty()) iteration.times = times.of(own[i]);
  }
}

}  // namespace

DeviceTimes::DeviceTimes(const Timeline& timeline, std::span<const std::uint32_t> order)
    : timeline_(timeline),
      counts_from_(timeline.spans.size(), kNoTime),
      compute_(union_of(timeline, order, false)),
      compute_or_copy_(union_of(timeline, order, true)) {
  std::int64_t communicated_until = INT64_MIN, copied_until = INT64_MIN;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    if (span.kind == SpanKind::kernel) continue;
    std::int64_t& until = span.kind == SpanKind::collective ? communicated_until : copied_until;
    counts_from_[index] = std::min(std::max(span.started_ns, until), span.ended_ns);
    until = std::max(until, span.ended_ns);
  }
}

double DeviceTimes::alone_ns(std::uint32_t span) const {
  const TimeInterval counted{counts_from_[span], timeline_.spans[span].ended_ns};
  return length_between(counted.from_ns, counted.to_ns) - compute_.within(counted);
}

BusyTimes DeviceTimes::of(std::span<const std::uint32_t> own) const {
  TimeIntervals busy, compute, overlapped;
  BusyTimes times;
  times.first_ns = timeline_.spans[own.front()].started_ns;
  times.last_ns = times.first_ns;
  for (const std::uint32_t index : own) {
    const Span& span = timeline_.spans[index];
    const TimeInterval stretch{span.started_ns, span.ended_ns};
    const TimeInterval counted{counts_from_[index], span.ended_ns};
    append(busy, stretch);
    if (span.kind == SpanKind::kernel) {
      append(compute, stretch);
    } else if (span.kind == SpanKind::collective) {
      times.communication_ns += length_between(counted.from_ns, counted.to_ns);
      times.hidden_communication_ns += compute_or_copy_.within(counted);
      times.communication_beside_compute_ns += compute_.within(counted);
    } else {
      times.copy_ns += length_between(counted.from_ns, counted.to_ns);
      times.copy_beside_compute_ns += compute_.within(counted);
    }
    // The part before the latest end so far overlaps at least one other command, because those started earlier.
    append(overlapped, {stretch.from_ns, std::min(stretch.to_ns, times.last_ns)});
    times.last_ns = std::max(times.last_ns, span.ended_ns);
  }
  times.span_ns = length_between(times.first_ns, times.last_ns);
  times.busy_ns = total(busy);
  times.idle_ns = times.span_ns - times.busy_ns;
  times.compute_ns = total(compute);
  times.exposed_communication_ns = times.communication_ns - times.hidden_communication_ns;
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
  const DeviceTimes times(timeline, order);
  found.times = times.of(order);
  found.copies = copies_of(timeline, times, order);
  add_iterations(timeline, times, order, iterations, found);
  return found;
}

}  // namespace weir
