#include "amd/join/clock_offset.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::amd {
namespace {

// Brackets times candidates: enough for thousands of creations, and a limit for hostile files.
constexpr std::size_t kMaxIntervals = std::size_t{1} << 20;

// How many brackets may be empty, because the tracer lost their events. None if there are few brackets.
std::size_t spare_of(std::size_t brackets) { return brackets < 4 ? 0 : std::max<std::size_t>(1, brackets / 10); }

// Offsets at which this candidate lies within the bracket; nothing if it is longer than the bracket.
std::optional<OffsetRange> offsets_of(const ClockBracket& bracket, const TraceInstant& candidate) {
  if (!is_time(candidate.started_ns)) return std::nullopt;
  const std::int64_t ended_ns =
      is_time(candidate.ended_ns) ? std::max(candidate.started_ns, candidate.ended_ns) : candidate.started_ns;
  OffsetRange range{-2 * kMaxTimeNs, 2 * kMaxTimeNs};
  if (bracket.after_ns != INT64_MIN) range.low_ns = bracket.after_ns - candidate.started_ns - kTraceStampLateNs;
  if (bracket.before_ns != INT64_MAX) range.high_ns = bracket.before_ns + kLogStampNs + kTraceStampEarlyNs - ended_ns;
  if (range.low_ns > range.high_ns) return std::nullopt;
  return range;
}

void merge(std::vector<OffsetRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const OffsetRange& a, const OffsetRange& b) { return a.low_ns < b.low_ns; });
  std::size_t kept = 0;
  for (const OffsetRange& range : ranges) {
    if (kept > 0 && range.low_ns <= ranges[kept - 1].high_ns)
      ranges[kept - 1].high_ns = std::max(ranges[kept - 1].high_ns, range.high_ns);
    else
      ranges[kept++] = range;
  }
  ranges.resize(kept);
}

// The maximum number of brackets that fit at once, and the offsets at which enough of them fit.
struct OffsetAgreement {
  std::size_t brackets = 0, most = 0;
  std::vector<OffsetRange> ranges;  // disjoint, in order; empty if no offset has enough
};

struct Edge {
  std::int64_t ns = 0;
  bool is_end = false;
};

// Offsets at which at least `enough` brackets fit.
std::vector<OffsetRange> where(const std::vector<Edge>& edges, std::size_t enough) {
  std::vector<OffsetRange> ranges;
  std::size_t depth = 0;
  for (const Edge& edge : edges) {
    if (!edge.is_end && ++depth == enough) ranges.push_back({edge.ns, edge.ns});
    if (edge.is_end && depth-- == enough) ranges.back().high_ns = edge.ns;
  }
  merge(ranges);
  return ranges;
}

// `spare`: brackets that may be empty because their event was lost. The true offset fits all others, but need not be
// the one that fits most: any offset at which all but `spare` fit is possible.
OffsetAgreement agree(const std::vector<std::vector<OffsetRange>>& offsets, std::size_t spare, bool has_lost_events) {
  OffsetAgreement found;
  found.brackets = offsets.size();
  std::vector<Edge> edges;
  for (const auto& ranges : offsets)
    for (const OffsetRange& range : ranges) {
      edges.push_back({range.low_ns, false});
      edges.push_back({range.high_ns, true});
    }
  // Ranges are closed: at the same offset, one that begins overlaps one that ends.
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return a.ns != b.ns ? a.ns < b.ns : static_cast<int>(a.is_end) < static_cast<int>(b.is_end);
  });
  std::size_t depth = 0;
  for (const Edge& edge : edges) {
    depth = edge.is_end ? depth - 1 : depth + 1;
    found.most = std::max(found.most, depth);
  }
  if (found.most + spare >= found.brackets)
    found.ranges =
        where(edges, found.most == found.brackets && !has_lost_events ? found.brackets : found.brackets - spare);
  return found;
}

bool has_bounds(const ClockBracket& bracket) {
  const bool has_after = bracket.after_ns != INT64_MIN, has_before = bracket.before_ns != INT64_MAX;
  return (has_after || has_before) && (!has_after || is_time(bracket.after_ns)) &&
         (!has_before || is_time(bracket.before_ns)) && !bracket.candidates.empty();
}

// Uses only the candidate at the bracket's own position, when order pairs them.
std::span<const TraceInstant> ordered(const ClockBracket& bracket) {
  if (bracket.siblings == 0 || bracket.siblings != bracket.candidates.size() || bracket.order >= bracket.siblings)
    return bracket.candidates;
  return bracket.candidates.subspan(bracket.order, 1);
}

struct Offsets {
  std::vector<std::vector<OffsetRange>> of_bracket;
  std::size_t unused = 0;
  bool is_bounded_below = false, is_bounded_above = false;
};

Offsets offsets_of(std::span<const ClockBracket> brackets, bool by_order) {
  Offsets offsets;
  std::size_t intervals = 0;
  for (const ClockBracket& bracket : brackets) {
    const auto candidates = by_order ? ordered(bracket) : bracket.candidates;
    if (!has_bounds(bracket) || intervals + candidates.size() > kMaxIntervals) {
      ++offsets.unused;
      continue;
    }
    intervals += candidates.size();
    std::vector<OffsetRange> ranges;
    for (const TraceInstant& candidate : candidates)
      if (const auto range = offsets_of(bracket, candidate)) ranges.push_back(*range);
    merge(ranges);
    offsets.is_bounded_below = offsets.is_bounded_below || bracket.after_ns != INT64_MIN;
    offsets.is_bounded_above = offsets.is_bounded_above || bracket.before_ns != INT64_MAX;
    offsets.of_bracket.push_back(std::move(ranges));
  }
  return offsets;
}

// The trace uses the log's clock unless something contradicts that.
ClockOffset check_same_clock(const Offsets& offsets, bool has_lost_events) {
  ClockOffset result;
  result.brackets = offsets.of_bracket.size();
  result.unused = offsets.unused;
  for (const auto& ranges : offsets.of_bracket)
    if (std::none_of(ranges.begin(), ranges.end(),
                     [](const OffsetRange& range) { return range.low_ns <= 0 && range.high_ns >= 0; }))
      ++result.left_out;
  // Calls that the tracer lost contradict nothing, as long as some of the traced ones are where they should be.
  if (result.left_out <= spare_of(result.brackets) || (has_lost_events && result.left_out < result.brackets)) {
    result.basis = OffsetBasis::same_clock;
    return result;
  }
  if (has_lost_events) {
    result.reason =
        "the trace's clock is said to be mono, but the trace lost events, and none that is left is where the log has "
        "it";
    return result;
  }
  result.warning = fmt::format(
      "The manifest says that the trace's clock is mono, but {} of {} queue operations of the log have no call of KFD "
      "between their two lines at offset 0.",
      result.left_out, result.brackets);
  result.reason = "the trace's clock is said to be mono, and the log contradicts it";
  return result;
}

}  // namespace

ClockOffset solve_clock_offset(std::span<const ClockBracket> brackets, std::string_view trace_clock,
                               bool has_lost_events) {
  Offsets offsets = offsets_of(brackets, false);
  if (trace_clock == "mono") return check_same_clock(offsets, has_lost_events);
  ClockOffset result;
  result.unused = offsets.unused;
  result.brackets = offsets.of_bracket.size();
  // counter, x86-tsc and ppc-tb do not count nanoseconds.
  if (trace_clock == "counter" || trace_clock == "x86-tsc" || trace_clock == "ppc-tb") {
    result.reason = fmt::format("the trace's clock is {}, which does not count time", trace_clock);
    return result;
  }
  if (offsets.of_bracket.empty()) {
    result.reason = "no queue creation is in both the log and the trace for a process that is known in both";
    return result;
  }
  if (!offsets.is_bounded_below || !offsets.is_bounded_above) {
    result.reason = "what is in both the log and the trace bounds the offset on one side only";
    return result;
  }
  const std::size_t spare = spare_of(offsets.of_bracket.size());
  OffsetAgreement found = agree(offsets.of_bracket, spare, has_lost_events);
  OffsetBasis basis = OffsetBasis::brackets;
  if (found.most == found.brackets && found.ranges.size() > 1 && !has_lost_events) {
    OffsetAgreement narrower = agree(offsets_of(brackets, true).of_bracket, 0, false);
    if (narrower.most == narrower.brackets && narrower.ranges.size() == 1) {
      found = std::move(narrower);
      basis = OffsetBasis::order;
    }
  }
  result.left_out = found.brackets - found.most;
  if (result.left_out > spare) {
    result.reason = fmt::format("at no offset do more than {} of {} queue operations fit between their lines",
                                found.most, found.brackets);
    return result;
  }
  if (found.ranges.size() != 1) {
    result.reason =
        fmt::format("{} offsets fit: the calls of KFD can be paired with the log in several ways", found.ranges.size());
    for (std::size_t i = 0; i < std::min(found.ranges.size(), ClockOffset::kMaxAlternatives); ++i)
      result.alternatives.push_back(found.ranges[i]);
    return result;
  }
  result.basis = basis;
  result.range = found.ranges[0];
  return result;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return a < 0 ? INT64_MIN : INT64_MAX;
  return sum;
}

Moment moment_of_log(std::int64_t printed_ns) { return {printed_ns, plus(printed_ns, kLogStampNs)}; }

Moment moment_of_trace(std::int64_t printed_ns, const OffsetRange& offset) {
  return {plus(plus(printed_ns, -kTraceStampEarlyNs), offset.low_ns),
          plus(plus(printed_ns, kTraceStampLateNs), offset.high_ns)};
}

DurationRange duration_between(const Moment& from, const Moment& to) {
  const auto minus = [](std::int64_t a, std::int64_t b) { return plus(a, b == INT64_MIN ? INT64_MAX : -b); };
  // The order of the two is known, so no duration is negative, however large the error.
  const std::int64_t least = minus(to.low_ns, from.high_ns);
  return {std::max<std::int64_t>(0, least), std::max<std::int64_t>(0, minus(to.high_ns, from.low_ns)), least > 0};
}

}  // namespace weir::amd
