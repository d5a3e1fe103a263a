#include "trace/device_spans.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace weir {
namespace {

std::vector<std::uint32_t> ordered(const Timeline& timeline, bool (*is_wanted)(const Span&) noexcept) {
  std::vector<std::uint32_t> order;
  order.reserve(timeline.spans.size());
  for (std::size_t i = 0; i < timeline.spans.size(); ++i)
    if (is_wanted(timeline.spans[i])) order.push_back(static_cast<std::uint32_t>(i));
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    const Span &first = timeline.spans[a], &second = timeline.spans[b];
    return std::tie(first.started_ns, first.ended_ns, a) < std::tie(second.started_ns, second.ended_ns, b);
  };
  // Spans from importers are already sorted; those of sessions may not be.
  if (!std::is_sorted(order.begin(), order.end(), earlier)) std::sort(order.begin(), order.end(), earlier);
  return order;
}

template <class IdOf>
SpanLanes lanes_of(const Timeline& timeline, std::span<const std::uint32_t> order, IdOf id_of) {
  SpanLanes lanes;
  std::unordered_map<std::int32_t, std::size_t> counts;
  for (const std::uint32_t index : order)
    if (const std::int32_t id = id_of(timeline.spans[index]); id != kNoQueue) ++counts[id];
  for (const auto& [id, count] : counts) lanes.ids.push_back(id);
  std::sort(lanes.ids.begin(), lanes.ids.end());
  std::size_t begin = 0;
  for (const std::int32_t id : lanes.ids) {
    // From here on counts[id] is the position of the lane's next span; after the last one it is the end of the lane.
    begin += std::exchange(counts[id], begin);
    lanes.ends.push_back(begin);
  }
  lanes.spans.resize(begin);
  for (const std::uint32_t index : order)
    if (const std::int32_t id = id_of(timeline.spans[index]); id != kNoQueue) lanes.spans[counts[id]++] = index;
  return lanes;
}

}  // namespace

SpanLanes lanes_by_stream(const Timeline& timeline, std::span<const std::uint32_t> order) {
  return lanes_of(timeline, order, [](const Span& span) { return static_cast<std::int32_t>(span.stream); });
}

SpanLanes lanes_by_queue(const Timeline& timeline, std::span<const std::uint32_t> order) {
  return lanes_of(timeline, order, [](const Span& span) { return span.queue; });
}

std::vector<std::uint32_t> device_work_by_start(const Timeline& timeline) { return ordered(timeline, is_device_work); }

std::vector<std::uint32_t> timed_by_start(const Timeline& timeline) { return ordered(timeline, is_timed); }

}  // namespace weir
