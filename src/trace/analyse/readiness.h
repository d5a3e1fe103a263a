// When commands were ready to run, and what was ahead of them in their hardware queues. Reads the timeline of one
// device; judges nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "measure/timeline.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {

inline constexpr std::uint32_t kNoSpan = UINT32_MAX;

// Copy engines are left out: each is a single engine.
inline bool is_on_queue(const Span& span) noexcept {
  return span.kind != SpanKind::host && span.queue != kNoQueue && span.queue < kCopyQueues;
}

// By span: when everything known to precede it had ended, on its stream and by dependencies; kNoTime where nothing
// does.
struct Floors {
  std::vector<std::int64_t> floor_ns;
  std::vector<std::uint32_t> last;  // the preceding command that ended last; kNoSpan where there is none
  std::vector<bool> is_known;       // false where it depends on a command without an end

  // Dependencies by the command that waits: those of span i are edges[first_edge[i]] to edges[first_edge[i + 1]].
  std::vector<Dependency> edges;
  std::vector<std::uint32_t> first_edge;
  std::vector<std::uint32_t> stream_before;  // the command before it on its stream; kNoSpan where there is none
};

// `order` is timed_by_start(). Chains need no search: a command between two that depend on each other in several steps
// ends after the first of them, and that end is examined; where clocks disagree, the latest end along the chain is
// passed on.
Floors floors_of(const Timeline& timeline, std::span<const std::uint32_t> order);

// The largest gap that counts as back to back: twice the usual gap between commands of one stream on a queue when the
// host is not late, within bounds.
struct GapLimit {
  double ns = 0;
  std::string origin;  // in words
};
GapLimit gap_limit(const Timeline& timeline, std::span<const std::uint32_t> order);

// Visits each pair (first, second) where `second` is next on its queue and, of those that started before, `first` ended
// last.
template <class Visit>
void visit_neighbours(const Timeline& timeline, std::span<const std::uint32_t> order, Visit visit) {
  std::unordered_map<std::int32_t, std::uint32_t> last_of;  // by queue
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    if (!is_on_queue(span)) continue;
    const auto [last, is_new] = last_of.try_emplace(span.queue, index);
    if (is_new) continue;
    visit(last->second, index);
    if (span.ended_ns >= timeline.spans[last->second].ended_ns) last->second = index;
  }
}

// Of the commands that entered a queue so far, the ones of two different streams that became ready last (or left it
// last, depending on the caller). A command of any stream then finds one of another stream ahead of it.
struct QueueFront {
  struct Latest {
    std::int64_t ready_ns = kNoTime;
    std::uint32_t span = kNoSpan;
    std::uint16_t stream = 0;
  };
  Latest first, second;

  void add(const Latest& entry) {
    if (first.span != kNoSpan && first.stream == entry.stream) {
      if (entry.ready_ns > first.ready_ns) first = entry;
    } else if (first.span == kNoSpan || entry.ready_ns > first.ready_ns) {
      second = std::exchange(first, entry);
    } else if (second.span == kNoSpan || entry.ready_ns > second.ready_ns) {
      second = entry;
    }
  }
  const Latest& for_stream(std::uint16_t stream) const { return first.stream == stream ? second : first; }
};

// Calls visit(first, second, from, to) for each command that was ready at `from` and queued behind one that was ready
// only at `to`. A queue issues its commands in the order in which it received them.
template <class Visit>
void visit_blocked(const Timeline& timeline, std::vector<std::uint32_t> order, const Floors& floors, Visit visit) {
  std::erase_if(order, [&](std::uint32_t i) {
    return !is_on_queue(timeline.spans[i]) || handed_over_ns(timeline.spans[i]) == kNoTime || !floors.is_known[i];
  });
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return handed_over_ns(timeline.spans[a]) < handed_over_ns(timeline.spans[b]);
  });
  std::unordered_map<std::int32_t, QueueFront> fronts;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    const std::int64_t ready = std::max(handed_over_ns(span), floors.floor_ns[index]);
    QueueFront& front = fronts[span.queue];
    if (const QueueFront::Latest& ahead = front.for_stream(span.stream); ahead.span != kNoSpan) {
      // A command that overtook the one ahead was not behind it after all. A command that left the queue first may
      // still start later: a collective that waits for a link.
      const Span& other = timeline.spans[ahead.span];
      const bool left_first = other.launched_ns != kNoTime && span.launched_ns != kNoTime &&
                              other.launched_ns <= span.launched_ns && ahead.ready_ns <= span.started_ns;
      const bool is_in_order = other.started_ns <= span.started_ns || left_first;
      const std::int64_t until = std::min(ahead.ready_ns, span.started_ns);
      if (is_in_order && length_between(ready, until) > timeline.clock_error_ns) visit(ahead.span, index, ready, until);
    }
    front.add({ready, index, span.stream});
  }
}

}  // namespace weir
