#include "trace/analyse/lane_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

// The device's span, divided into buckets of whole nanoseconds so that every time falls into exactly one.
struct Axis {
  std::int64_t first_ns = 0, last_ns = 0;
  std::uint64_t bucket_ns = 1;
  std::size_t buckets = 0;

  Axis(std::int64_t first, std::int64_t last) : first_ns(first), last_ns(last) {
    const std::uint64_t length = distance_ns(first, last);
    bucket_ns = std::max<std::uint64_t>(1, length / kBacklogBuckets + (length % kBacklogBuckets != 0 ? 1 : 0));
    buckets = static_cast<std::size_t>(length / bucket_ns + (length % bucket_ns != 0 ? 1 : 0));
  }
  std::uint64_t length_of(std::size_t bucket) const noexcept {
    const std::uint64_t begin = bucket * bucket_ns;
    return std::min(bucket_ns, distance_ns(first_ns, last_ns) - begin);
  }
};

// Adds level x time to the area, and `level` to the maximum, of each bucket between two distances from the axis start.
void spread(const Axis& axis, std::uint64_t from, std::uint64_t to, std::size_t level, std::vector<double>& areas,
            std::vector<std::uint32_t>& largest) {
  while (from < to) {
    const auto bucket = static_cast<std::size_t>(from / axis.bucket_ns);
    const std::uint64_t end = std::min(to, bucket * axis.bucket_ns + axis.length_of(bucket));
    areas[bucket] += static_cast<double>(level) * static_cast<double>(end - from);
    largest[bucket] = std::max(largest[bucket], static_cast<std::uint32_t>(level));
    from = end;
  }
}

std::optional<Backlog> backlog_of(const Timeline& timeline, std::span<const std::uint32_t> order, const Axis& axis,
                                  bool has_series) {
  std::vector<std::int64_t> entries, ends;
  Backlog backlog;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    if (handed_over_ns(span) == kNoTime) continue;
    ++backlog.commands;
    // No command ends before the first start, so one handed over earlier is still waiting then.
    const std::int64_t entry = std::max(axis.first_ns, std::min(handed_over_ns(span), span.started_ns));
    if (entry == span.ended_ns) continue;
    entries.push_back(entry);
    ends.push_back(span.ended_ns);
  }
  if (backlog.commands == 0 || axis.buckets == 0) return std::nullopt;
  std::vector<double> areas(axis.buckets);
  std::vector<std::uint32_t> largest(axis.buckets);
  double area = 0;
  visit_levels(std::move(entries), std::move(ends), [&](std::int64_t from_ns, std::int64_t to_ns, std::size_t level) {
    if (level > backlog.peak) {
      backlog.peak = level;
      backlog.peak_ns = from_ns;
    }
    area += static_cast<double>(level) * length_between(from_ns, to_ns);
    if (has_series)
      spread(axis, distance_ns(axis.first_ns, from_ns), distance_ns(axis.first_ns, to_ns), level, areas, largest);
  });
  backlog.mean = area / length_between(axis.first_ns, axis.last_ns);
  if (!has_series) return backlog;
  backlog.max_in_bucket = std::move(largest);
  backlog.mean_in_bucket.resize(axis.buckets);
  for (std::size_t i = 0; i < axis.buckets; ++i)
    backlog.mean_in_bucket[i] = static_cast<float>(areas[i] / static_cast<double>(axis.length_of(i)));
  return backlog;
}

// Spans of a lane are sorted by start.
std::vector<LaneUse> uses_of(const Timeline& timeline, const SpanLanes& lanes, const Axis& axis) {
  const std::size_t count = lanes.ids.size();
  // Only the lanes with the most commands get series: for thousands of streams they would be larger than the timeline.
  std::vector<std::size_t> by_commands(count);
  std::iota(by_commands.begin(), by_commands.end(), std::size_t{0});
  std::stable_sort(by_commands.begin(), by_commands.end(),
                   [&](std::size_t a, std::size_t b) { return lanes.count(a) > lanes.count(b); });
  std::vector<bool> has_series(count);
  for (std::size_t i = 0; i < std::min(count, kMaxBacklogSeries); ++i) has_series[by_commands[i]] = true;

  const auto span_ns = length_between(axis.first_ns, axis.last_ns);
  std::vector<LaneUse> uses(count);
  for (std::size_t lane = 0; lane < count; ++lane) {
    const std::span<const std::uint32_t> own = lanes.of(lane);
    LaneUse& use = uses[lane];
    use.lane = lanes.ids[lane];
    use.commands = own.size();
    use.first_ns = timeline.spans[own.front()].started_ns;
    use.last_ns = use.first_ns;
    TimeIntervals busy;
    for (const std::uint32_t index : own) {
      const Span& span = timeline.spans[index];
      append(busy, {span.started_ns, span.ended_ns});
      use.last_ns = std::max(use.last_ns, span.ended_ns);
    }
    use.busy_ns = static_cast<double>(total_ns(busy));
    use.utilisation = span_ns > 0 ? use.busy_ns / span_ns : 0;
    use.backlog = backlog_of(timeline, own, axis, has_series[lane]);
  }
  return uses;
}

}  // namespace

LaneUses lane_use(const Timeline& timeline) {
  LaneUses found;
  const std::vector<std::uint32_t> order = device_work_by_start(timeline);
  if (order.empty()) {
    found.reason = fmt::format("no command of the device has times: {}", timeline.source);
    return found;
  }
  found.first_ns = timeline.spans[order.front()].started_ns;
  found.last_ns = found.first_ns;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    found.last_ns = std::max(found.last_ns, span.ended_ns);
    if (handed_over_ns(span) == kNoTime) ++found.without_submit;
    if (span.queue == kNoQueue) ++found.without_queue;
  }
  const Axis axis(found.first_ns, found.last_ns);
  found.bucket_ns = static_cast<double>(axis.bucket_ns);
  found.device = backlog_of(timeline, order, axis, true);
  if (!found.device)
    found.reason = axis.buckets == 0 ? "no command of the device took any time"
                                     : fmt::format("no command has a time of submission: {}", timeline.source);
  found.streams = uses_of(timeline, lanes_by_stream(timeline, order), axis);
  found.queues = uses_of(timeline, lanes_by_queue(timeline, order), axis);
  return found;
}

}  // namespace weir
