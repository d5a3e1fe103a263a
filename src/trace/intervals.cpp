#include "trace/intervals.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

bool is_earlier(const TimeInterval& a, const TimeInterval& b) noexcept { return a.from_ns < b.from_ns; }

}  // namespace

void append(TimeIntervals& to, const TimeInterval& next) {
  if (next.to_ns <= next.from_ns) return;
  if (!to.empty() && next.from_ns <= to.back().to_ns) {
    to.back().to_ns = std::max(to.back().to_ns, next.to_ns);
  } else {
    to.push_back(next);
  }
}

TimeIntervals unite_all(std::vector<TimeInterval> stretches) {
  if (!std::is_sorted(stretches.begin(), stretches.end(), is_earlier))
    std::sort(stretches.begin(), stretches.end(), is_earlier);
  TimeIntervals united;
  for (const TimeInterval& stretch : stretches) append(united, stretch);
  return united;
}

TimeIntervals unite(const TimeIntervals& a, const TimeIntervals& b) {
  TimeIntervals united;
  auto from_a = a.begin();
  auto from_b = b.begin();
  while (from_a != a.end() || from_b != b.end()) {
    const bool takes_a = from_b == b.end() || (from_a != a.end() && is_earlier(*from_a, *from_b));
    append(united, takes_a ? *from_a++ : *from_b++);
  }
  return united;
}

TimeIntervals intersect(const TimeIntervals& a, const TimeIntervals& b) {
  TimeIntervals common;
  auto from_a = a.begin();
  auto from_b = b.begin();
  while (from_a != a.end() && from_b != b.end()) {
    append(common, {std::max(from_a->from_ns, from_b->from_ns), std::min(from_a->to_ns, from_b->to_ns)});
    // The one that ends first intersects nothing more.
    if (from_a->to_ns < from_b->to_ns) {
      ++from_a;
    } else {
      ++from_b;
    }
  }
  return common;
}

TimeIntervals subtract(const TimeIntervals& a, const TimeIntervals& b) {
  TimeIntervals left;
  auto hole = b.begin();
  for (const TimeInterval& whole : a) {
    std::int64_t from = whole.from_ns;
    while (hole != b.end() && hole->to_ns <= from) ++hole;
    // A hole may reach into the next interval, so `hole` does not advance here.
    for (auto at = hole; at != b.end() && at->from_ns < whole.to_ns; ++at) {
      append(left, {from, at->from_ns});
      from = at->to_ns;
    }
    if (from < whole.to_ns) append(left, {from, whole.to_ns});
  }
  return left;
}

std::uint64_t total_ns(const TimeIntervals& intervals) noexcept {
  std::uint64_t total = 0;
  for (const TimeInterval& interval : intervals) total += distance_ns(interval.from_ns, interval.to_ns);
  return total;
}

std::size_t most_at_once(std::span<const TimeInterval> stretches) {
  std::vector<std::pair<std::int64_t, int>> turns;  // ends sort before starts at the same moment
  turns.reserve(2 * stretches.size());
  for (const TimeInterval& one : stretches) {
    if (one.to_ns <= one.from_ns) continue;
    turns.emplace_back(one.from_ns, 1);
    turns.emplace_back(one.to_ns, -1);
  }
  std::sort(turns.begin(), turns.end());
  std::int64_t depth = 0, most = 0;
  for (const auto& turn : turns) most = std::max(most, depth += turn.second);
  return static_cast<std::size_t>(most);
}

IntervalCover::IntervalCover(TimeIntervals made) : intervals(std::move(made)) {
  std::uint64_t sum = 0;
  for (const TimeInterval& each : intervals) {
    before_ns.push_back(sum);
    sum += distance_ns(each.from_ns, each.to_ns);
  }
}

double IntervalCover::within(const TimeInterval& stretch) const {
  // How much lies before a moment.
  const auto until = [&](std::int64_t ns) -> std::uint64_t {
    const auto after = std::upper_bound(intervals.begin(), intervals.end(), ns,
                                        [](std::int64_t t, const TimeInterval& each) { return t < each.from_ns; });
    if (after == intervals.begin()) return 0;
    const auto last = static_cast<std::size_t>(after - intervals.begin()) - 1;
    return before_ns[last] + distance_ns(intervals[last].from_ns, std::min(ns, intervals[last].to_ns));
  };
  return static_cast<double>(until(stretch.to_ns) - until(stretch.from_ns));
}

}  // namespace weir
