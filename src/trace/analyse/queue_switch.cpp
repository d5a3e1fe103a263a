#include "trace/analyse/queue_switch.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "measure/statistics.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

// Some sources name queues only for kernels, so copies have none.
bool is_on_copy_engine(const Span& span) noexcept {
  return span.queue >= kCopyQueues || (span.queue == kNoQueue && span.kind == SpanKind::copy);
}

std::optional<SwitchGap> gap_of(const std::vector<double>& gaps) {
  if (gaps.size() < kMinGaps) return std::nullopt;
  return SwitchGap{gaps.size(), median(gaps)};
}

std::optional<double> overhead(const std::optional<SwitchGap>& between, const std::optional<SwitchGap>& within) {
  if (!between || !within) return std::nullopt;
  return between->median_ns - within->median_ns;
}

}  // namespace

QueueSwitch queue_switch(const Timeline& timeline) {
  QueueSwitch found;
  if (!timeline.has_exact_gaps) {
    found.reason = fmt::format("gaps cannot be trusted: {}", timeline.source);
    return found;
  }
  std::vector<double> same_stream, same_queue, other_queue, unknown_queue;
  const Span* last = nullptr;            // the command that ended last so far
  std::int64_t host_ended_ns = kNoTime;  // of the last host function so far: a gap that it reaches into is the host's
  for (const std::uint32_t index : timed_by_start(timeline)) {
    const Span* const span = &timeline.spans[index];
    if (span->kind == SpanKind::host) {
      host_ended_ns = std::max(host_ended_ns, span->ended_ns);
      continue;
    }
    // Only pairs with nothing running in between have a gap.
    if (last != nullptr && span->started_ns >= last->ended_ns && span->iteration == last->iteration) {
      const auto gap = length_between(last->ended_ns, span->started_ns);
      if (is_on_copy_engine(*span) || is_on_copy_engine(*last)) {
        ++found.other_engine;
      } else if (span->submitted_ns == kNoTime) {
        ++found.unknown_submit;
      } else if (handed_over_ns(*span) > last->ended_ns || host_ended_ns > last->ended_ns) {
        ++found.host_bound;
      } else if (span->stream == last->stream) {
        same_stream.push_back(gap);
      } else if (span->queue == kNoQueue || last->queue == kNoQueue) {
        unknown_queue.push_back(gap);
      } else {
        (span->queue == last->queue ? same_queue : other_queue).push_back(gap);
      }
    }
    if (last == nullptr || span->ended_ns > last->ended_ns) last = span;
  }
  found.same_stream = gap_of(same_stream);
  found.same_queue = gap_of(same_queue);
  found.other_queue = gap_of(other_queue);
  found.unknown_queue = gap_of(unknown_queue);
  found.same_queue_overhead_ns = overhead(found.same_queue, found.same_stream);
  found.other_queue_overhead_ns = overhead(found.other_queue, found.same_stream);
  found.unknown_queue_overhead_ns = overhead(found.unknown_queue, found.same_stream);
  if (!found.same_queue_overhead_ns && !found.other_queue_overhead_ns && !found.unknown_queue_overhead_ns)
    found.reason = fmt::format(
        "fewer than {} pairs of consecutive commands within and between streams with nothing else running ({} within, "
        "{} between, {} left out because the host was late{})",
        kMinGaps, same_stream.size(), same_queue.size() + other_queue.size() + unknown_queue.size(), found.host_bound,
        found.unknown_submit == 0
            ? ""
            : fmt::format(", {} because nothing says when the second was submitted", found.unknown_submit));
  return found;
}

}  // namespace weir
