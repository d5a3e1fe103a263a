// Arithmetic on time intervals: unions, intersections, differences. Knows numbers only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir {

struct TimeInterval {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;  // exclusive

  bool operator==(const TimeInterval&) const = default;
};

// What all of these return and (except `unite_all`) take: ascending, disjoint, not touching, none empty.
using TimeIntervals = std::vector<TimeInterval>;

// 0 where `to_ns` is not later. Exact for all times: the distance may exceed what a signed number holds.
inline std::uint64_t distance_ns(std::int64_t from_ns, std::int64_t to_ns) noexcept {
  return to_ns > from_ns ? static_cast<std::uint64_t>(to_ns) - static_cast<std::uint64_t>(from_ns) : 0;
}

// a - b, as integers: nanoseconds since 1970 as doubles are 256 ns apart. Wraps where the result does not fit.
inline std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

inline double length_between(std::int64_t from_ns, std::int64_t to_ns) noexcept {
  return static_cast<double>(distance_ns(from_ns, to_ns));
}

// Adds an interval that starts no earlier than any before it; intervals that touch are merged.
void append(TimeIntervals& to, const TimeInterval& next);

// Takes intervals in any order; empty ones vanish. Linear where they are sorted by start.
TimeIntervals unite_all(std::vector<TimeInterval> stretches);

TimeIntervals unite(const TimeIntervals& a, const TimeIntervals& b);
TimeIntervals intersect(const TimeIntervals& a, const TimeIntervals& b);
TimeIntervals subtract(const TimeIntervals& a, const TimeIntervals& b);  // what is in `a` but not in `b`
std::uint64_t total_ns(const TimeIntervals& intervals) noexcept;

// How much of any stretch these intervals cover.
struct IntervalCover {
  TimeIntervals intervals;
  std::vector<std::uint64_t> before_ns;  // by interval: total of those before it

  explicit IntervalCover(TimeIntervals made);
  double within(const TimeInterval& stretch) const;
};

// Calls visit(from_ns, to_ns, level) for each stretch in which `level` of the intervals that begin at `starts` and end
// at `ends` are open, by time; never with level 0. Back-to-back intervals do not overlap. Both lists may be in any
// order; nothing ends before it starts.
template <class Visit>
void visit_levels(std::vector<std::int64_t> starts, std::vector<std::int64_t> ends, Visit visit) {
  if (!std::is_sorted(starts.begin(), starts.end())) std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  std::size_t started = 0, ended = 0;
  std::int64_t now_ns = 0;
  while (ended < ends.size()) {
    const bool is_end = started == starts.size() || ends[ended] <= starts[started];
    const std::int64_t next_ns = is_end ? ends[ended] : starts[started];
    if (started > ended && next_ns > now_ns) visit(now_ns, next_ns, started - ended);
    now_ns = next_ns;
    ++(is_end ? ended : started);
  }
}
// The largest number of intervals that cover one moment, given in any order. One that ends where another begins does
// not overlap it.
std::size_t most_at_once(std::span<const TimeInterval> stretches);

}  // namespace weir
