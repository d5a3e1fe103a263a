#include "trace/analyse/concurrency.h"

#include <algorithm>
#include <cstdint>

#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

// Sweeps over starts and ends of the spans that `is_wanted`, in order of time.
template <class IsWanted>
std::optional<ConcurrencyLevels> levels_of(const Timeline& timeline, IsWanted is_wanted) {
  std::vector<std::int64_t> starts, ends;
  for (const Span& span : timeline.spans) {
    if (!is_timed(span) || span.ended_ns == span.started_ns || !is_wanted(span)) continue;
    starts.push_back(span.started_ns);
    ends.push_back(span.ended_ns);
  }
  if (starts.empty()) return std::nullopt;
  if (!std::is_sorted(starts.begin(), starts.end())) std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  ConcurrencyLevels levels;
  double area = 0;
  std::size_t running = 0, started = 0;
  std::int64_t last_ns = starts.front();
  for (std::size_t ended = 0; ended < ends.size();) {
    // Ends come before starts at the same instant: back to back is not at once.
    const bool is_end = started == starts.size() || ends[ended] <= starts[started];
    const std::int64_t now_ns = is_end ? ends[ended] : starts[started];
    if (running > 0 && now_ns > last_ns) {
      const auto length = static_cast<double>(distance_ns(last_ns, now_ns));
      const std::size_t level = std::min(running, kMostLevels);
      if (levels.exactly_ns.size() < level) levels.exactly_ns.resize(level);
      (running > kMostLevels ? levels.beyond_ns : levels.exactly_ns[level - 1]) += length;
      levels.busy_ns += length;
      area += length * static_cast<double>(running);
    }
    last_ns = now_ns;
    if (is_end) {
      --running;
      ++ended;
    } else {
      ++running;
      ++started;
    }
    levels.max = std::max(levels.max, running);
  }
  levels.mean = area / levels.busy_ns;
  return levels;
}

}  // namespace

std::optional<Concurrency> concurrency(const Timeline& timeline) {
  const auto levels = levels_of(timeline, [](const Span&) { return true; });
  if (!levels) return std::nullopt;
  return Concurrency{levels->mean, static_cast<int>(levels->max), levels->busy_ns};
}

ConcurrencyProfile concurrency_profile(const Timeline& timeline) {
  return {levels_of(timeline, is_device_work),
          levels_of(timeline, [](const Span& span) { return span.kind == SpanKind::kernel; })};
}

}  // namespace weir
