#include "trace/analyse/queue_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trace/device_spans.h"

namespace weir {
namespace {

struct Lane {
  std::uint16_t stream = 0;
  std::vector<const Span*> spans;  // by submission
  std::size_t before = 0;          // how many were submitted before the current command
};

// Dense index of the pair (low, high) among `count` lanes: (0,1) (0,2) ... (1,2) ...
std::size_t pair_index(std::size_t low, std::size_t high, std::size_t count) {
  return low * (2 * count - low - 1) / 2 + (high - low - 1);
}

// Two calls that overlap, of different threads or of one graph, may have reached their queues in either order.
bool is_certainly_before(const Span& earlier, const Span& later, std::int64_t error) noexcept {
  return earlier.submitted_ns + error < later.submitted_ns && handed_over_ns(earlier) <= later.submitted_ns;
}

}  // namespace

const PairOrder* QueueOrder::find(std::uint16_t a, std::uint16_t b) const noexcept {
  const auto wanted = std::minmax(a, b);
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), wanted, [](const PairOrder& pair, const auto& key) {
    return std::pair(pair.a, pair.b) < std::pair(key.first, key.second);
  });
  return at != pairs.end() && at->a == wanted.first && at->b == wanted.second ? &*at : nullptr;
}

QueueOrder queue_order(const Timeline& timeline) {
  QueueOrder found;
  const auto error = static_cast<std::int64_t>(timeline.clock_error_ns);
  std::vector<const Span*> spans;
  for (const Span& span : timeline.spans) {
    if (span.submitted_ns == kNoTime || span.started_ns == kNoTime || span.queue >= kCopyQueues)
      ++found.left_out;
    else
      spans.push_back(&span);
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span* a, const Span* b) { return a->submitted_ns < b->submitted_ns; });
  std::map<std::uint16_t, std::size_t> lane_of;
  for (const Span* span : spans) lane_of.try_emplace(span->stream, 0);
  std::vector<Lane> lanes;
  for (auto& [stream, index] : lane_of) {
    index = lanes.size();
    lanes.push_back({.stream = stream});
  }
  for (const Span* span : spans) lanes[lane_of[span->stream]].spans.push_back(span);
  if (lanes.size() < 2) {
    found.reason = fmt::format("fewer than two streams have commands with times: {}", timeline.source);
    return found;
  }
  for (std::size_t a = 0; a < lanes.size(); ++a)
    for (std::size_t b = a + 1; b < lanes.size(); ++b) found.pairs.push_back({lanes[a].stream, lanes[b].stream});

  for (const Span* later : spans) {
    const std::size_t own = lane_of[later->stream];
    for (std::size_t other = 0; other < lanes.size(); ++other) {
      Lane& lane = lanes[other];
      while (lane.before < lane.spans.size() && is_certainly_before(*lane.spans[lane.before], *later, error))
        ++lane.before;
      if (other == own || lane.before == 0) continue;
      const Span& earlier = *lane.spans[lane.before - 1];
      if (earlier.started_ns <= handed_over_ns(*later) + error) continue;
      PairOrder& pair = found.pairs[pair_index(std::min(own, other), std::max(own, other), lanes.size())];
      ++pair.opportunities;
      if (later->started_ns + error < earlier.started_ns) ++pair.inversions;
    }
  }
  return found;
}

}  // namespace weir
