#include "trace/analyse/false_serialisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "trace/analyse/readiness.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

bool is_any_queue_shared(const Timeline& timeline, std::span<const std::uint32_t> order) {
  std::unordered_map<std::int32_t, std::uint16_t> stream_of;
  return std::any_of(order.begin(), order.end(), [&](std::uint32_t i) {
    const Span& span = timeline.spans[i];
    return is_on_queue(span) && stream_of.try_emplace(span.queue, span.stream).first->second != span.stream;
  });
}

}  // namespace

FalseSerialisation false_serialisation(const Timeline& timeline) {
  FalseSerialisation found;
  found.are_dependencies_known = timeline.has_dependencies;
  const std::vector<std::uint32_t> order = timed_by_start(timeline);
  if (std::none_of(order.begin(), order.end(), [&](std::uint32_t i) { return is_on_queue(timeline.spans[i]); })) {
    found.reason = fmt::format("this trace has no hardware queues ({})", timeline.source);
    return found;
  }
  GapLimit limit = gap_limit(timeline, order);
  found.gap_limit_ns = limit.ns;
  found.gap_limit_origin = std::move(limit.origin);
  const Floors floors = floors_of(timeline, order);
  std::unordered_map<std::uint64_t, SerialisedStreams> by_streams;
  std::vector<TimeInterval> lost_stretches;
  const auto keep = [&](const SerialisedPair& pair, std::int64_t from_ns, std::int64_t to_ns) {
    keep_worst(found.worst, pair, kMaxSerialisedPairs,
               [](const SerialisedPair& a, const SerialisedPair& b) { return a.lost_ns > b.lost_ns; });
    lost_stretches.push_back({from_ns, to_ns});
    const auto [a, b] = std::minmax(pair.first_stream, pair.second_stream);
    SerialisedStreams& streams =
        by_streams[std::uint64_t{a} << 48 | std::uint64_t{b} << 32 | static_cast<std::uint32_t>(pair.queue)];
    streams.a = a;
    streams.b = b;
    streams.queue = pair.queue;
    ++streams.pairs;
    streams.lost_ns += pair.lost_ns;
  };
  visit_neighbours(timeline, order, [&](std::uint32_t first, std::uint32_t second) {
    const Span &before = timeline.spans[first], &after = timeline.spans[second];
    if (before.stream == after.stream || after.started_ns < before.ended_ns) return;
    const auto gap_ns = length_between(before.ended_ns, after.started_ns);
    if (gap_ns > found.gap_limit_ns) return;
    ++found.back_to_back;
    if (handed_over_ns(after) == kNoTime || !floors.is_known[second]) {
      ++found.unknown;
      return;
    }
    const std::int64_t ready = std::max(handed_over_ns(after), floors.floor_ns[second]);
    const std::uint64_t lost = distance_ns(std::max(ready, before.started_ns), before.ended_ns);
    if (lost == 0) {
      ++found.not_ready;
      return;
    }
    const auto lost_ns = static_cast<double>(lost);
    ++found.pairs;
    found.lost_ns += lost_ns;
    keep({first, second, before.stream, after.stream, before.queue, before.name, after.name, lost_ns, gap_ns},
         std::max(ready, before.started_ns), before.ended_ns);
  });
  visit_blocked(timeline, order, floors,
                [&](std::uint32_t first, std::uint32_t second, std::int64_t from_ns, std::int64_t to_ns) {
                  const Span &ahead = timeline.spans[first], &behind = timeline.spans[second];
                  const auto lost_ns = length_between(from_ns, to_ns);
                  ++found.behind;
                  found.behind_ns += lost_ns;
                  keep({first, second, ahead.stream, behind.stream, behind.queue, ahead.name, behind.name, lost_ns,
                        length_between(to_ns, behind.started_ns), true},
                       from_ns, to_ns);
                });
  found.wall_ns = static_cast<double>(total_ns(unite_all(std::move(lost_stretches))));
  found.stream_pairs = by_streams.size();
  for (const auto& [key, streams] : by_streams) found.by_streams.push_back(streams);
  std::sort(found.by_streams.begin(), found.by_streams.end(),
            [](const SerialisedStreams& a, const SerialisedStreams& b) {
              return std::tie(b.lost_ns, a.a, a.b, a.queue) < std::tie(a.lost_ns, b.a, b.b, b.queue);
            });
  if (found.by_streams.size() > kMaxSerialisedStreams) found.by_streams.resize(kMaxSerialisedStreams);
  const bool is_any_known = std::any_of(order.begin(), order.end(), [&](std::uint32_t i) {
    return is_on_queue(timeline.spans[i]) && handed_over_ns(timeline.spans[i]) != kNoTime;
  });
  const bool is_all_unknown = found.back_to_back > 0 && found.unknown == found.back_to_back && found.behind == 0;
  if ((!is_any_known && is_any_queue_shared(timeline, order)) || is_all_unknown)
    found.reason = fmt::format("nothing says when commands became ready: {}", timeline.source);
  return found;
}

}  // namespace weir
