#include "trace/analyse/concurrency.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

// Considers only spans for which `is_wanted` returns true.
template <class IsWanted>
std::optional<ConcurrencyLevels> levels_of(const Timeline& timeline, IsWanted is_wanted) {
  std::vector<std::int64_t> starts, ends;
  for (const Span& span : timeline.spans) {
    if (!is_timed(span) || span.ended_ns == span.started_ns || !is_wanted(span)) continue;
    starts.push_back(span.started_ns);
    ends.push_back(span.ended_ns);
  }
  if (starts.empty()) return std::nullopt;
  ConcurrencyLevels levels;
  double area = 0;
  visit_levels(std::move(starts), std::move(ends), [&](std::int64_t from_ns, std::int64_t to_ns, std::size_t running) {
    const auto length = length_between(from_ns, to_ns);
    const std::size_t level = std::min(running, kMaxLevels);
    if (levels.exactly_ns.size() < level) levels.exactly_ns.resize(level);
    (running > kMaxLevels ? levels.beyond_ns : levels.exactly_ns[level - 1]) += length;
    levels.busy_ns += length;
    levels.max = std::max(levels.max, running);
    area += length * static_cast<double>(running);
  });
  levels.mean = area / levels.busy_ns;
  return levels;
}

}  // namespace

ConcurrencyProfile concurrency_profile(const Timeline& timeline) {
  return {levels_of(timeline, is_device_work),
          levels_of(timeline, [](const Span& span) { return span.kind == SpanKind::kernel; })};
}

}  // namespace weir
