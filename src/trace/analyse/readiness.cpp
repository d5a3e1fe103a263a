#include "trace/analyse/readiness.h"

#include <fmt/format.h>

#include "base/units.h"
#include "measure/statistics.h"

namespace weir {
namespace {

constexpr std::size_t kMinDistances = 10;
constexpr double kSmallestLimit = 1'000, kLargestLimit = 50'000, kUsualLimit = 10'000;  // ns

}  // namespace

GapLimit gap_limit(const Timeline& timeline, std::span<const std::uint32_t> order) {
  std::vector<double> distances;
  visit_neighbours(timeline, order, [&](std::uint32_t first, std::uint32_t second) {
    const Span &before = timeline.spans[first], &after = timeline.spans[second];
    if (before.stream != after.stream || after.started_ns < before.ended_ns) return;
    if (handed_over_ns(after) == kNoTime || handed_over_ns(after) > before.ended_ns) return;
    distances.push_back(length_between(before.ended_ns, after.started_ns));
  });
  if (distances.size() < kMinDistances)
    return {kUsualLimit, fmt::format("assumed: {} gaps between commands of one stream on one queue, with the second "
                                     "submitted in time, are too few to derive it",
                                     distances.size())};
  const double usual = median(distances);
  return {std::clamp(2 * usual, kSmallestLimit, kLargestLimit),
          fmt::format("twice the median gap ({}, {} gaps) between commands of one stream on one queue, within {} and "
                      "{}",
                      format_duration(usual), distances.size(), format_duration(kSmallestLimit),
                      format_duration(kLargestLimit))};
}

Floors floors_of(const Timeline& timeline, std::span<const std::uint32_t> order) {
  const std::size_t count = timeline.spans.size();
  Floors floors{std::vector<std::int64_t>(count, kNoTime),
                std::vector<std::uint32_t>(count, kNoSpan),
                std::vector<bool>(count, true),
                {},
                std::vector<std::uint32_t>(count + 1),
                std::vector<std::uint32_t>(count, kNoSpan)};
  std::vector<Dependency>& edges = floors.edges;
  edges.reserve(timeline.dependencies.size());
  for (const Dependency& edge : timeline.dependencies)
    if (edge.before < count && edge.after < count && edge.before != edge.after) edges.push_back(edge);
  for (const Dependency& edge : edges) ++floors.first_edge[edge.after + 1];
  for (std::size_t i = 0; i < count; ++i) floors.first_edge[i + 1] += floors.first_edge[i];
  std::sort(edges.begin(), edges.end(), [](const Dependency& a, const Dependency& b) {
    return a.after != b.after ? a.after < b.after : a.before < b.before;
  });

  // The latest end along any chain that leads to a span, including its own. A span that starts later than its dependant
  // is not in a chain on which the clocks agree; only its own end is used.
  std::vector<std::int64_t> chain_end(count);
  for (std::size_t i = 0; i < count; ++i) chain_end[i] = timeline.spans[i].ended_ns;
  struct StreamEnd {
    std::int64_t ns = kNoTime;
    std::uint32_t span = kNoSpan;    // the one with this end
    std::uint32_t newest = kNoSpan;  // on the stream
  };
  std::vector<StreamEnd> streams(std::size_t{UINT16_MAX} + 1);
  for (const std::uint32_t index : order) {
    const Span& span = timeline.spans[index];
    StreamEnd& stream = streams[span.stream];
    std::int64_t floor = stream.ns;
    std::uint32_t last = stream.span;
    for (std::uint32_t i = floors.first_edge[index]; i < floors.first_edge[index + 1]; ++i) {
      const std::uint32_t before = edges[i].before;
      if (chain_end[before] > floor) {
        floor = chain_end[before];
        last = before;
      }
      if (!is_timed(timeline.spans[before])) floors.is_known[index] = false;
    }
    floors.floor_ns[index] = floor;
    floors.last[index] = last;
    floors.stream_before[index] = stream.newest;
    chain_end[index] = std::max(span.ended_ns, floor);
    stream.newest = index;
    if (chain_end[index] >= stream.ns) {
      stream.ns = chain_end[index];
      stream.span = index;
    }
  }
  return floors;
}

}  // namespace weir
