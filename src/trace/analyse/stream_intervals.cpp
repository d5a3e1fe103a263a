#include "trace/analyse/stream_intervals.h"

#include <fmt/format.h>

#include <algorithm>

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
    found.reason = order.empty() ? fmt::format("no command has a hardware queue: {}", timeline.source)
                                 : "no stream ran more than one command";
  }
  return found;
}

}  // namespace weir
