#include "trace/stream_intervals.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir {

StreamIntervals stream_intervals(const Timeline& timeline) {
  StreamIntervals found;
  std::vector<const Span*> spans;
  for (const Span& span : timeline.spans) {
    if (span.queue >= kCopyQueues) {
      ++found.on_copy_engines;
    } else if (span.queue == kNoQueue || span.started_ns == kNoTime || span.ended_ns == kNoTime) {
      ++found.without_queue;
    } else {
      spans.push_back(&span);
    }
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span* a, const Span* b) {
    return a->stream != b->stream ? a->stream < b->stream : a->started_ns < b->started_ns;
  });
  bool has_repeats = false;
  for (const Span* span : spans) {
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
    found.reason = spans.empty() ? fmt::format("no command has a hardware queue: {}", timeline.source)
                                 : "no stream ran more than one command";
  }
  return found;
}

}  // namespace weir
