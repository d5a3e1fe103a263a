// The offset between the kernel tracer's clock and the runtime log's, from events that must lie between two lines of
// the log. The result is an interval of all offsets that fit, never a best guess. Knows times, but no files and no
// queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::amd {

// Stamps are printed in microseconds. The log and function_graph truncate; the other tracers round.
inline constexpr std::int64_t kLogStampNs = 1000;        // true time in [printed, printed + this]
inline constexpr std::int64_t kTraceStampEarlyNs = 500;  // true time in [printed - this,
inline constexpr std::int64_t kTraceStampLateNs = 1000;  //               printed + this], whichever tracer
inline constexpr std::int64_t kStampErrorNs = kLogStampNs + kTraceStampLateNs;  // for a distance between the two
// No clock exceeds this, and differences of such times cannot overflow.
inline constexpr std::int64_t kMaxTimeNs = std::int64_t{1} << 60;
inline bool is_time(std::int64_t ns) { return ns > -kMaxTimeNs && ns < kMaxTimeNs; }

// Something that the kernel did, on the tracer's clock.
struct TraceInstant {
  std::int64_t started_ns = 0;
  std::int64_t ended_ns = 0;  // a lower bound; the start if nothing is known
};

// One of `candidates` began after `after_ns` and ended before `before_ns` of the log.
struct ClockBracket {
  std::int64_t after_ns = INT64_MIN;   // INT64_MIN: no bound
  std::int64_t before_ns = INT64_MAX;  // INT64_MAX: no bound
  std::span<const TraceInstant> candidates;
  // Its position among the brackets that share these candidates, and their number. If there are as many as candidates,
  // and none overlaps another, the order pairs them.
  std::size_t order = 0, siblings = 0;
};

struct OffsetRange {
  std::int64_t low_ns = 0, high_ns = 0;  // log = trace + offset
};

enum class OffsetBasis : std::uint8_t {
  none,
  same_clock,  // the trace uses the log's clock: offset 0, not contradicted by the brackets
  brackets,    // all offsets at which every bracket holds one of its candidates, except for lost events
  order,       // like brackets, but paired by position, because several pairings were possible
};

struct ClockOffset {
  OffsetBasis basis = OffsetBasis::none;
  OffsetRange range;                      // unless basis is none
  std::size_t brackets = 0;               // used
  std::size_t left_out = 0;               // of those, empty at every such offset: their events count as not traced
  std::size_t unused = 0;                 // without a candidate, or beyond the limit
  std::string reason;                     // why there is no offset
  std::string warning;                    // what contradicts the manifest
  std::vector<OffsetRange> alternatives;  // other offsets that fit; at most kMaxAlternatives

  static constexpr std::size_t kMaxAlternatives = 8;
  bool is_known() const { return basis != OffsetBasis::none; }
  std::int64_t middle_ns() const { return range.low_ns + (range.high_ns - range.low_ns) / 2; }
  std::int64_t half_width_ns() const { return (range.high_ns - range.low_ns + 1) / 2; }
};

// `trace_clock`: the name from tracefs; empty if unknown. The offset is assumed constant: with a drifting clock,
// brackets contradict each other, and there is no offset. `has_lost_events`: reported by the tracer; a bracket may then
// hold another bracket's call, because its own was lost.
ClockOffset solve_clock_offset(std::span<const ClockBracket> brackets, std::string_view trace_clock,
                               bool has_lost_events = false);

// Files may contain any number as a time, so sums saturate.
std::int64_t plus(std::int64_t a, std::int64_t b);

// A time as an interval, so that differences claim no more than the stamps allow.
struct Moment {
  std::int64_t low_ns = 0, high_ns = 0;
};
Moment moment_of_log(std::int64_t printed_ns);
Moment moment_of_trace(std::int64_t printed_ns, const OffsetRange& offset);

// The time from one moment to a later one: in [least, most].
struct DurationRange {
  std::int64_t least_ns = 0, most_ns = 0;  // INT64_MAX: no bound
  bool is_distinguishable = true;          // the lower bound is above 0
};
DurationRange duration_between(const Moment& from, const Moment& to);

}  // namespace weir::amd
