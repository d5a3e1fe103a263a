#include "trace/analyse/queue_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "trace/device_spans.h"

namespace weir {

StreamIntervals stream_intervals(const Timeline& timeline) {
  StreamIntervals found;
  for (const Span& span : timeline.spans) {
    if (span.queue >= kCopyQueues) {
      ++found.on_copy_engines;
    } else if (span.queue == kNoQueue || !is_timed(span)) {
      ++found.without_queue;
    }
  }
  std::vector<std::uint32_t> order = timed_by_start(timeline);
  std::erase_if(order, [&](std::uint32_t index) {
    return timeline.spans[index].queue == kNoQueue || timeline.spans[index].queue >= kCopyQueues;
  });
  bool has_repeats = false;
  for (const std::uint32_t index : lanes_by_stream(timeline, order).spans) {
    const Span* const span = &timeline.spans[index];
    if (found.queues_of.size() <= span->stream) found.queues_of.resize(std::size_t{span->stream} + 1);
    std::vector<std::int32_t>& queues = found.queues_of[span->stream];
    has_repeats |= !queues.empty();
    if (const auto at = std::lower_bound(queues.begin(), queues.end(), span->queue);
        at == queues.end() || *at != span->queue)
      queues.insert(at, span->queue);
    StreamInterval* const last = found.intervals.empty() ? nullptr : &found.intervals.back();
    if (last != nullptr && last->stream == span->stream && last->queue == span->queue) {
      last->to_ns = std::max(last->to_ns, span->ended_ns);
      ++last->commands;
    } else {
      found.intervals.push_back({span->stream, span->queue, span->started_ns, span->ended_ns, 1});
    }
  }
  if (has_repeats) {
    found.is_fixed = std::all_of(found.queues_of.begin(), found.queues_of.end(),
                                 [](const auto& queues) { return queues.size() <= 1; });
  } else {
    found.reason = order.empty() ? fmt::format("this trace has no hardware queues ({})", timeline.source)
                                 : "no stream ran more than one command";
  }
  return found;
}

QueueMap queue_map(const Timeline& timeline) {
  QueueMap found;
  StreamIntervals used = stream_intervals(timeline);
  found.is_fixed = used.is_fixed;
  found.reason = std::move(used.reason);
  found.on_copy_engines = used.on_copy_engines;
  found.without_queue = used.without_queue;

  std::map<std::int32_t, QueueStreams> queues;
  std::vector<bool> is_sharing(used.queues_of.size());
  for (std::size_t stream = 0; stream < used.queues_of.size(); ++stream) {
    if (used.queues_of[stream].empty()) continue;
    StreamQueues& own = found.streams.emplace_back();
    own.stream = static_cast<std::uint16_t>(stream);
    for (const std::int32_t queue : used.queues_of[stream]) {
      own.queues.push_back({queue, 0});
      queues[queue].streams.push_back(own.stream);
    }
  }
  // Intervals are sorted by stream, like found.streams.
  auto own = found.streams.begin();
  for (std::size_t i = 0; i < used.intervals.size(); ++i) {
    const StreamInterval& interval = used.intervals[i];
    while (own->stream != interval.stream) ++own;
    const auto use = std::lower_bound(own->queues.begin(), own->queues.end(), interval.queue,
                                      [](const QueueOfStream& a, std::int32_t queue) { return a.queue < queue; });
    use->commands += interval.commands;
    queues[interval.queue].commands += interval.commands;
    if (i == 0 || used.intervals[i - 1].stream != interval.stream) continue;
    ++own->changes;
    found.changes.push_back({interval.from_ns, interval.stream, used.intervals[i - 1].queue, interval.queue});
  }
  for (auto& [id, queue] : queues) {
    queue.queue = id;
    if (queue.streams.size() > 1) {
      ++found.shared_queues;
      for (const std::uint16_t stream : queue.streams) is_sharing[stream] = true;
    }
    found.queues.push_back(std::move(queue));
  }
  found.sharing_streams = static_cast<std::size_t>(std::count(is_sharing.begin(), is_sharing.end(), true));
  found.change_count = found.changes.size();
  std::stable_sort(found.changes.begin(), found.changes.end(), [](const QueueChange& a, const QueueChange& b) {
    return std::tie(a.at_ns, a.stream) < std::tie(b.at_ns, b.stream);
  });
  if (found.changes.size() > kMaxQueueChanges) found.changes.resize(kMaxQueueChanges);
  return found;
}

}  // namespace weir
