#include "trace/analyse/overlap_times.h"

#include <fmt/format.h>

#include <utility>

#include "trace/analyse/collectives.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

OverlapTimes times_of(const Timeline& timeline, const DeviceTimes& device, std::span<const std::uint32_t> order,
                      const std::vector<CollectiveKind>& kinds) {
  OverlapTimes made;
  made.commands = order.size();
  made.times = device.of(order);
  std::array<TimeIntervals, kCollectiveKinds> unions;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    const auto length_ns = length_between(span.started_ns, span.ended_ns);
    if (span.kind == SpanKind::kernel) made.compute_sum_ns += length_ns;
    if (span.kind != SpanKind::collective) continue;
    made.communication_sum_ns += length_ns;
    append(unions[static_cast<std::size_t>(kinds[index])], {span.started_ns, span.ended_ns});
  }
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind)
    made.collective_ns[kind] = static_cast<double>(total_ns(unions[kind]));
  return made;
}

}  // namespace

OverlapFound overlap_times(const Timeline& timeline, std::span<const TraceRange> iterations) {
  OverlapFound found;
  const std::vector<std::uint32_t> order = device_work_by_start(timeline);
  if (order.empty()) {
    found.reason = fmt::format("no command of the device has times: {}", timeline.source);
    return found;
  }
  const std::vector<CollectiveKind> kinds = collective_kinds(timeline);
  const DeviceTimes device(timeline, order);
  found.whole = times_of(timeline, device, order, kinds);
  const Iterations placed = place_in_iterations(timeline, order, iterations);
  if (placed.numbers.empty()) {
    found.whole->iteration = timeline.spans[order.front()].iteration;
    found.iterations.push_back(*found.whole);
    return found;
  }
  const std::vector<std::vector<std::uint32_t>> own = placed.apart(order);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].empty()) continue;
    OverlapTimes made = times_of(timeline, device, own[i], kinds);
    made.iteration = placed.numbers[i];
    if (!iterations.empty()) made.name = iterations[i].name;
    found.iterations.push_back(std::move(made));
  }
  return found;
}

}  // namespace weir
