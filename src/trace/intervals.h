// Arithmetic of stretches of time: unions, intersections, differences. Knows numbers only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir {

struct TimeInterval {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;  // not part of it

  bool operator==(const TimeInterval&) const = default;
};

// What all of these give and (but for `unite_all`) take: ascending, disjoint, apart from each other, none empty.
using TimeIntervals = std::vector<TimeInterval>;

// 0 where `to_ns` is not later. Exact for all times: their distance may be more than a signed number holds.
inline std::uint64_t distance_ns(std::int64_t from_ns, std::int64_t to_ns) noexcept {
  return to_ns > from_ns ? static_cast<std::uint64_t>(to_ns) - static_cast<std::uint64_t>(from_ns) : 0;
}

// Adds a stretch that starts no earlier than any before it; what touches becomes one.
void append(TimeIntervals& to, const TimeInterval& next);

// Of any stretches in any order; empty ones vanish. Linear where they come by start.
TimeIntervals unite_all(std::vector<TimeInterval> stretches);

TimeIntervals unite(const TimeIntervals& a, const TimeIntervals& b);
TimeIntervals intersect(const TimeIntervals& a, const TimeIntervals& b);
TimeIntervals subtract(const TimeIntervals& a, const TimeIntervals& b);  // what is in `a` and not in `b`
std::uint64_t total_ns(const TimeIntervals& intervals) noexcept;

// How many stretches cover one moment at most; in any order. One that ends where another begins does not meet it.
std::size_t most_at_once(std::span<const TimeInterval> stretches);

}  // namespace weir
