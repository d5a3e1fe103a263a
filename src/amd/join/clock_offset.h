// How far the kernel tracer's clock is from the runtime log's, from what must have happened between two lines of the
// log. An interval that holds every offset which fits, never a best guess. Knows times; no files and no queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::amd {

// Stamps are printed in microseconds. The log cuts off, and so does function_graph; the other tracers round.
inline constexpr std::int64_t kLogStampNs = 1000;        // true time in [printed, printed + this]
inline constexpr std::int64_t kTraceStampEarlyNs = 500;  // true time in [printed - this,
inline constexpr std::int64_t kTraceStampLateNs = 1000;  //               printed + this], whichever tracer
inline constexpr std::int64_t kStampErrorNs = kLogStampNs + kTraceStampLateNs;  // of a distance from one to the other
// Beyond this no clock goes; differences of such times cannot overflow.
inline constexpr std::int64_t kMostTimeNs = std::int64_t{1} << 60;

// Something that the kernel did, in the tracer's clock.
struct TraceInstant {
  std::int64_t started_ns = 0;
  std::int64_t ended_ns = 0;  // at least: it may have taken longer. The start where nothing is known
};

// One of `candidates` began after `after_ns` and ended before `before_ns` of the log.
struct ClockBracket {
  std::int64_t after_ns = INT64_MIN;   // INT64_MIN: no bound
  std::int64_t before_ns = INT64_MAX;  // INT64_MAX: no bound
  std::span<const TraceInstant> candidates;
  // Its place among the brackets that share these candidates, and how many those are: where there are as many as
  // candidates, and none overlaps another, the order pairs them.
  std::size_t order = 0, siblings = 0;
};

struct OffsetRange {
  std::int64_t low_ns = 0, high_ns = 0;  // log = trace + offset
};

enum class OffsetBasis : std::uint8_t {
  none,
  same_clock,  // the trace's clock is the log's: 0, not contradicted by the brackets
  brackets,    // all offsets at which brackets hold one of their candidates: every one, or but for lost events
  order,       // as brackets, each with the candidate of its place, as there were several ways to pair them
};

struct ClockOffset {
  OffsetBasis basis = OffsetBasis::none;
  OffsetRange range;         // where basis is not none
  std::size_t brackets = 0;  // that were used
  std::size_t left_out = 0;  // of those, that hold nothing at any such offset: taken for events that were not traced
  std::size_t unused = 0;    // that had no candidate, or were more than we look at
  std::string reason;        // why there is no offset
  std::string warning;       // what contradicts the manifest
  std::vector<OffsetRange> alternatives;  // offsets that fit as well; at most kMostAlternatives

  static constexpr std::size_t kMostAlternatives = 8;
  bool is_known() const { return basis != OffsetBasis::none; }
  std::int64_t middle_ns() const { return range.low_ns + (range.high_ns - range.low_ns) / 2; }
  std::int64_t half_width_ns() const { return (range.high_ns - range.low_ns + 1) / 2; }
};

// `trace_clock`: as tracefs named it; empty where nobody said. An offset is constant here: a clock that drifts makes
// brackets contradict each other, which leaves no offset. `has_lost_events`: the tracer says so; then a bracket that
// holds a call may hold another's, as its own was lost.
ClockOffset solve_clock_offset(std::span<const ClockBracket> brackets, std::string_view trace_clock,
                               bool has_lost_events = false);

// Files may hold any number as a time: sums stay at the ends of what there is.
std::int64_t plus(std::int64_t a, std::int64_t b);

// A moment as an interval, so that no difference claims more than its stamps do.
struct Moment {
  std::int64_t low_ns = 0, high_ns = 0;
};
Moment moment_of_log(std::int64_t printed_ns);
Moment moment_of_trace(std::int64_t printed_ns, const OffsetRange& offset);

// How long from one moment to a later one: in [least, most].
struct DurationRange {
  std::int64_t least_ns = 0, most_ns = 0;  // INT64_MAX: no bound
  bool is_distinguishable = true;          // from nothing at all: the least is more than 0
};
DurationRange duration_between(const Moment& from, const Moment& to);

}  // namespace weir::amd
