#include "trace/false_serialisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "measure/statistics.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::size_t kFewestGaps = 10;
constexpr double kSmallestLimit = 1'000, kLargestLimit = 50'000, kUsualLimit = 10'000;  // ns

bool is_on_queue(const Span& span) noexcept {
  return span.kind != SpanKind::host && span.queue != kNoQueue && span.queue < kCopyQueues;
}

// For each pair (first, second): `second` is next on its queue, and `first` ended last of those that started before.
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

// How far apart commands of one stream follow each other on a queue when the host is not late: what is not much further
// apart is back to back.
void derive_limit(const Timeline& timeline, std::span<const std::uint32_t> order, FalseSerialisation& to) {
  std::vector<double> distances;
  visit_neighbours(timeline, order, [&](std::uint32_t first, std::uint32_t second) {
    const Span &before = timeline.spans[first], &after = timeline.spans[second];
    if (before.stream != after.stream || after.started_ns < before.ended_ns) return;
    if (handed_over_ns(after) == kNoTime || handed_over_ns(after) > before.ended_ns) return;
    distances.push_back(static_cast<double>(distance_ns(before.ended_ns, after.started_ns)));
  });
  if (distances.size() < kFewestGaps) {
    to.gap_limit_ns = kUsualLimit;
    to.gap_limit_origin = fmt::format(
        "assumed: {} gaps between commands of one stream on one queue, with the second submitted in time, are too few "
        "to derive it",
        distances.size());
    return;
  }
  const double usual = median(distances);
  to.gap_limit_ns = std::clamp(2 * usual, kSmallestLimit, kLargestLimit);
  to.gap_limit_origin = fmt::format(
      "twice the median gap ({}, {} gaps) between commands of one stream on one queue, within {} and {}",
      format_duration(usual), distances.size(), format_duration(kSmallestLimit), format_duration(kLargestLimit));
}

// By span: when all that is known to come before it had ended; kNoTime where there is nothing. `is_known` is false for
// what depends on a command without an end.
struct Floors {
  std::vector<std::int64_t> floor_ns;
  std::vector<bool> is_known;
};

Floors floors_of(const Timeline& timeline, std::span<const std::uint32_t> order) {
  const std::size_t count = timeline.spans.size();
  std::vector<Dependency> edges;
  edges.reserve(timeline.dependencies.size());
  for (const Dependency& edge : timeline.dependencies)
    if (edge.before < count && edge.after < count && edge.before != edge.after) edges.push_back(edge);
  std::vector<std::uint32_t> first_edge(count + 1);
  for (const Dependency& edge : edges) ++first_edge[edge.after + 1];
  for (std::size_t i = 0; i < count; ++i) first_edge[i + 1] += first_edge[i];
  std::sort(edges.begin(), edges.end(), [](const Dependency& a, const Dependency& b) { return a.after < b.after; });

  Floors floors{std::vector<std::int64_t>(count, kNoTime), std::vector<bool>(count, true)};
  // The latest end along any chain that leads to a span and through it. What starts later than its dependant cannot be
  // in a chain that clocks agree on: of that its own end counts.
  std::vector<std::int64_t> chain_end(count);
  for (std::size_t i = 0; i < count; ++i) chain_end[i] = timeline.spans[i].ended_ns;
  std::vector<std::int64_t> stream_end(std::size_t{UINT16_MAX} + 1, kNoTime);
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    std::int64_t floor = stream_end[span.stream];
    for (std::uint32_t i = first_edge[index]; i < first_edge[index + 1]; ++i) {
      floor = std::max(floor, chain_end[edges[i].before]);
      if (!is_timed(timeline.spans[edges[i].before])) floors.is_known[index] = false;
    }
    floors.floor_ns[index] = floor;
    chain_end[index] = std::max(span.ended_ns, floor);
    stream_end[span.stream] = std::max(stream_end[span.stream], chain_end[index]);
  }
  return floors;
}

void keep_worst(const SerialisedPair& pair, std::vector<SerialisedPair>& worst) {
  const auto at = std::upper_bound(worst.begin(), worst.end(), pair,
                                   [](const auto& a, const auto& b) { return a.lost_ns > b.lost_ns; });
  if (at == worst.end() && worst.size() == kMostSerialisedPairs) return;
  worst.insert(at, pair);
  if (worst.size() > kMostSerialisedPairs) worst.pop_back();
}

// Of the commands that came into a queue so far: those that became ready last, of two different streams. A third one
// finds one of them in front of it.
struct Front {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Latest {
    std::int64_t ready_ns = kNoTime;
    std::uint32_t span = kNone;
    std::uint16_t stream = 0;
  };
  Latest first, second;

  void add(const Latest& entry) {
    if (first.span != kNone && first.stream == entry.stream) {
      if (entry.ready_ns > first.ready_ns) first = entry;
    } else if (first.span == kNone || entry.ready_ns > first.ready_ns) {
      second = std::exchange(first, entry);
    } else if (second.span == kNone || entry.ready_ns > second.ready_ns) {
      second = entry;
    }
  }
  const Latest& for_stream(std::uint16_t stream) const { return first.stream == stream ? second : first; }
};

// Calls visit(first, second, from, to) for each command that was ready at `from` and stood behind one that was ready
// only at `to`.
template <class Visit>
void visit_blocked(const Timeline& timeline, std::vector<std::uint32_t> order, const Floors& floors, Visit visit) {
  std::erase_if(order, [&](std::uint32_t i) {
    return !is_on_queue(timeline.spans[i]) || handed_over_ns(timeline.spans[i]) == kNoTime || !floors.is_known[i];
  });
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return handed_over_ns(timeline.spans[a]) < handed_over_ns(timeline.spans[b]);
  });
  std::unordered_map<std::int32_t, Front> fronts;
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    const std::int64_t ready = std::max(handed_over_ns(span), floors.floor_ns[index]);
    Front& front = fronts[span.queue];
    if (const Front::Latest& ahead = front.for_stream(span.stream); ahead.span != Front::kNone) {
      // What overtook the one in front of it was not behind it after all.
      const bool is_in_order = timeline.spans[ahead.span].started_ns <= span.started_ns;
      const std::int64_t until = std::min(ahead.ready_ns, span.started_ns);
      if (is_in_order && static_cast<double>(distance_ns(ready, until)) > timeline.clock_error_ns)
        visit(ahead.span, index, ready, until);
    }
    front.add({ready, index, span.stream});
  }
}

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
    found.reason = fmt::format("no command has a hardware queue: {}", timeline.source);
    return found;
  }
  derive_limit(timeline, order, found);
  const Floors floors = floors_of(timeline, order);
  std::unordered_map<std::uint64_t, SerialisedStreams> by_streams;
  std::vector<TimeInterval> lost_stretches;
  const auto keep = [&](const SerialisedPair& pair, std::int64_t from_ns, std::int64_t to_ns) {
    keep_worst(pair, found.worst);
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
    const auto gap_ns = static_cast<double>(distance_ns(before.ended_ns, after.started_ns));
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
                  const auto lost_ns = static_cast<double>(distance_ns(from_ns, to_ns));
                  ++found.behind;
                  found.behind_ns += lost_ns;
                  keep({first, second, ahead.stream, behind.stream, behind.queue, ahead.name, behind.name, lost_ns,
                        static_cast<double>(distance_ns(to_ns, behind.started_ns)), true},
                       from_ns, to_ns);
                });
  found.wall_ns = static_cast<double>(total_ns(unite_all(std::move(lost_stretches))));
  found.stream_pairs = by_streams.size();
  for (const auto& [key, streams] : by_streams) found.by_streams.push_back(streams);
  std::sort(found.by_streams.begin(), found.by_streams.end(),
            [](const SerialisedStreams& a, const SerialisedStreams& b) {
              return std::tie(b.lost_ns, a.a, a.b, a.queue) < std::tie(a.lost_ns, b.a, b.b, b.queue);
            });
  if (found.by_streams.size() > kMostSerialisedStreams) found.by_streams.resize(kMostSerialisedStreams);
  const bool is_any_known = std::any_of(order.begin(), order.end(), [&](std::uint32_t i) {
    return is_on_queue(timeline.spans[i]) && handed_over_ns(timeline.spans[i]) != kNoTime;
  });
  const bool is_all_unknown = found.back_to_back > 0 && found.unknown == found.back_to_back && found.behind == 0;
  if ((!is_any_known && is_any_queue_shared(timeline, order)) || is_all_unknown)
    found.reason = fmt::format("nothing says when commands became ready: {}", timeline.source);
  return found;
}

}  // namespace weir
