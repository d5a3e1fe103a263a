#include "trace/clock_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "trace/clock_pairs.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"
#include "trace/merge.h"

namespace weir {
namespace {

constexpr std::size_t kMinMatched = 3;
constexpr double kClearOffset = 2;  // in errors; a smaller offset may only be the way ranks leave collectives
constexpr int kMaxTried = 8, kMaxTriedWithout = 64;  // ranks, with and without an offset so far
constexpr std::size_t kMaxIndirect = 256;            // ranks among which chains of common groups are searched

// `via` is the rank that the pairs were compared with; its own curve brings them to the reference's clock. An offset
// that is known is kept.
void align(RankClock& clock, ClockPairs pairs, const RankClock& via) {
  clock.matched = std::max(clock.matched, pairs.ends.size());
  if (pairs.ends.size() < kMinMatched || (clock.offset_ns && (pairs.rival_ns || !via.error_ns))) return;
  for (ClockPair& pair : pairs.ends) pair.ours_ns = minus(pair.ours_ns, via.curve.distance_ns(pair.ours_ns));
  clock.curve = ClockCurve(std::move(pairs.ends));
  clock.offset_ns = clock.curve.usual_distance_ns();
  clock.drift_ppm = clock.curve.drift_ppm();
  clock.error_ns.reset();
  clock.reason.clear();
  if (!via.error_ns) clock.reason = via.reason;
  if (via.error_ns && !pairs.rival_ns) clock.error_ns = *via.error_ns + clock.curve.error_ns();
  if (pairs.rival_ns)
    clock.reason = fmt::format(
        "the offset of rank {} is not known: its collectives look so alike that others pair as well; it may be {} or a "
        "multiple off",
        clock.rank, format_duration(*pairs.rival_ns));
}

// Processes whose times were written by one recorder share a clock, so an offset known for one holds for all; the one
// with the smallest error is used. Returns whether a rank got or improved an offset this way.
bool share_clocks(ClockAlignment& alignment, const Timeline& timeline) {
  std::unordered_map<std::int32_t, const RankClock*> best;
  const auto clock_of = [&](const RankClock& rank) { return timeline.processes[rank.process].clock; };
  for (const RankClock& rank : alignment.ranks) {
    if (clock_of(rank) < 0 || !rank.offset_ns) continue;
    const RankClock*& known = best[clock_of(rank)];
    const auto error = [](const RankClock& one) { return one.error_ns.value_or(INFINITY); };
    const bool is_better = known == nullptr || rank.process == alignment.reference ||
                           (known->process != alignment.reference && error(rank) < error(*known));
    if (is_better) known = &rank;
  }
  bool has_changed = false;
  for (RankClock& rank : alignment.ranks) {
    const auto known = best.find(clock_of(rank));
    if (known == best.end() || known->second == &rank) continue;
    has_changed |= !rank.offset_ns || (!rank.error_ns && known->second->error_ns);
    rank.offset_ns = known->second->offset_ns;
    rank.error_ns = known->second->error_ns;
    rank.drift_ppm = known->second->drift_ppm;
    rank.curve = known->second->curve;
    rank.reason = known->second->reason;
  }
  return has_changed;
}

bool is_one_clock(const ClockAlignment& alignment, const Timeline& timeline) {
  const std::int32_t clock = timeline.processes[alignment.reference].clock;
  return clock >= 0 && std::all_of(alignment.ranks.begin(), alignment.ranks.end(), [&](const RankClock& rank) {
           return timeline.processes[rank.process].clock == clock;
         });
}

// Ranks of a grid share groups with their row and column only. The others are reached through those, and errors add up.
// So are ranks whose collectives do not decide the offset, where those shared with another rank do.
void align_by_others(ClockAlignment& alignment, const ClockPairing& pairing, const Timeline& timeline) {
  if (alignment.ranks.size() > kMaxIndirect) return;
  std::vector<std::array<int, 2>> tried(timeline.processes.size());  // without an offset, with one
  // Ranks whose offset is known come first; what follows from one that is not known is not known either.
  for (const bool needs_known : {true, false}) {
    const auto is_done = [&](const RankClock& clock) {
      return needs_known ? clock.error_ns.has_value() : clock.offset_ns.has_value();
    };
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      for (RankClock& clock : alignment.ranks) {
        for (std::size_t i = 0; i < alignment.ranks.size() && !is_done(clock); ++i) {
          const RankClock& via = alignment.ranks[i];
          if (!is_done(via) || via.process == alignment.reference) continue;
          // Weighing shifts takes long, and ranks that step together rarely know better than the reference.
          int& count = tried[clock.process][clock.offset_ns ? 1 : 0];
          if (count >= (clock.offset_ns ? kMaxTried : kMaxTriedWithout)) break;
          ClockPairs pairs = pairing.common_ends(via.process, clock.process);
          count += pairs.has_common ? 1 : 0;
          align(clock, std::move(pairs), via);
          has_changed |= is_done(clock);
        }
      }
      has_changed |= share_clocks(alignment, timeline);
    }
  }
}

struct Range {
  std::int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;
};

std::vector<Range> ranges_of(const Timeline& timeline) {
  std::vector<Range> ranges(timeline.processes.size());
  for (const Span& span : timeline.spans) {
    if (!is_timed(span) || span.stream >= timeline.streams.size()) continue;
    Range& range = ranges[timeline.devices[timeline.streams[span.stream].device].process];
    range.from_ns = std::min(range.from_ns, span.started_ns);
    range.to_ns = std::max(range.to_ns, span.ended_ns);
  }
  return ranges;
}

// Why a rank cannot be brought onto one clock. Different kinds of clocks are recognised by their ranges.
std::string reason_for(const RankClock& clock, int reference, const Range& ours, const Range& theirs) {
  std::string reason =
      clock.matched == 0
          ? fmt::format("rank {} has no collective in common with rank {} or a rank that is aligned with it",
                        clock.rank, reference)
          : fmt::format("rank {} has only {} collective{} in common with rank {}, and {} are needed", clock.rank,
                        clock.matched, clock.matched == 1 ? "" : "s", reference, kMinMatched);
  if (theirs.from_ns > ours.to_ns || ours.from_ns > theirs.to_ns)
    reason += fmt::format("; their times do not meet: {} to {} ns against {} to {} ns", theirs.from_ns, theirs.to_ns,
                          ours.from_ns, ours.to_ns);
  return reason;
}

std::string summary_of(const ClockAlignment& alignment) {
  std::size_t shifted = 0, without = 0, unknown = 0, drifting = 0;
  const std::string* reason = nullptr;
  for (const RankClock& clock : alignment.ranks) {
    shifted += clock.is_shifted ? 1 : 0;
    drifting += clock.is_shifted && clock.drift_ppm ? 1 : 0;
    without += clock.offset_ns ? 0 : 1;
    unknown += clock.offset_ns && !clock.error_ns ? 1 : 0;
    // Missing offsets are the worse problem.
    if (!clock.error_ns && (reason == nullptr || (!clock.offset_ns && without == 1))) reason = &clock.reason;
  }
  const std::size_t ranks = alignment.ranks.size();
  if (without > 0)
    return fmt::format("the clocks of {} of {} ranks could not be aligned, so their times stay as recorded: {}",
                       without, ranks, *reason);
  if (unknown > 0)
    return fmt::format(
        "the offsets of {} of {} ranks are not known: times of different ranks may be whole steps apart: "
        "{}; {}",
        unknown, ranks, *reason,
        shifted > 0 ? "they were shifted by the most plausible offset" : "nothing was shifted");
  if (shifted == 0)
    return fmt::format("the ranks' clocks agree to within {} (ends of common collectives); nothing was shifted",
                       format_duration(alignment.error_ns));
  return fmt::format("{} of {} ranks were shifted onto one clock by the ends of common collectives, to within {}{}",
                     shifted, ranks, format_duration(alignment.error_ns),
                     drifting > 0 ? fmt::format("; the drift of {} of them was taken out", drifting) : "");
}

std::int64_t shifted(std::int64_t ns, std::int64_t by) noexcept {
  if (ns == kNoTime) return kNoTime;
  std::int64_t moved = 0;
  return __builtin_sub_overflow(ns, by, &moved) ? kNoTime : moved;
}

// `by` is called with a time and returns what to subtract from it.
template <class By>
void shift(Span& span, const By& by) noexcept {
  for (std::int64_t Span::* time : {&Span::enqueued_ns, &Span::submitted_ns, &Span::accepted_ns, &Span::launched_ns,
                                    &Span::started_ns, &Span::ended_ns, &Span::seen_ns})
    span.*time = shifted(span.*time, by(span.*time));
}

// For calls and ranges.
template <class Stretch, class By>
void shift(Stretch& stretch, const By& by) noexcept {
  stretch.started_ns = shifted(stretch.started_ns, by(stretch.started_ns));
  stretch.ended_ns = shifted(stretch.ended_ns, by(stretch.ended_ns));
}

template <class By>
void shift(MemoryChange& change, const By& by) noexcept {
  change.at_ns = shifted(change.at_ns, by(change.at_ns));
}

}  // namespace

std::optional<ClockAlignment> align_clocks(const Timeline& timeline) {
  const std::vector<Range> ranges = ranges_of(timeline);
  ClockAlignment alignment;
  for (std::uint16_t process = 0; process < ranges.size(); ++process)
    if (ranges[process].from_ns <= ranges[process].to_ns)
      alignment.ranks.push_back({process, timeline.processes[process].rank, 0, {}, {}, {}, false, {}, {}});
  if (alignment.ranks.size() < 2) return std::nullopt;
  std::stable_sort(alignment.ranks.begin(), alignment.ranks.end(),
                   [](const RankClock& a, const RankClock& b) { return a.rank < b.rank; });
  const ClockPairing pairing(timeline);
  // The reference is the first rank that has collectives to align on.
  alignment.reference = alignment.ranks.front().process;
  for (const RankClock& clock : alignment.ranks) {
    if (!pairing.has_any(clock.process)) continue;
    alignment.reference = clock.process;
    break;
  }
  const int reference_rank = timeline.processes[alignment.reference].rank;
  RankClock reference;
  reference.offset_ns = reference.error_ns = 0;
  for (RankClock& clock : alignment.ranks) {
    if (clock.process == alignment.reference)
      clock.offset_ns = clock.error_ns = 0;
    else
      align(clock, pairing.common_ends(alignment.reference, clock.process), reference);
  }
  share_clocks(alignment, timeline);
  align_by_others(alignment, pairing, timeline);
  alignment.is_aligned = true;
  for (RankClock& clock : alignment.ranks) {
    alignment.is_aligned &= clock.error_ns.has_value();
    // Where it is not known which collectives pair, their distances are as steady for all that may.
    alignment.error_ns = std::max(alignment.error_ns, clock.error_ns.value_or(clock.curve.error_ns()));
    if (!clock.offset_ns)
      clock.reason = reason_for(clock, reference_rank, ranges[alignment.reference], ranges[clock.process]);
  }
  // The worst rank shows how far apart ranks may leave a collective on one clock; some always leave a little later.
  double left_ns = 0;
  for (RankClock& clock : alignment.ranks) {
    if (!clock.offset_ns) continue;
    clock.is_shifted = clock.drift_ppm || std::fabs(*clock.offset_ns) > kClearOffset * alignment.error_ns;
    if (!clock.is_shifted) left_ns = std::max(left_ns, std::fabs(*clock.offset_ns));
  }
  alignment.error_ns = std::max(alignment.error_ns, left_ns);
  for (RankClock& clock : alignment.ranks)
    if (clock.process == alignment.reference)
      for (const RankClock& other : alignment.ranks) clock.matched = std::max(clock.matched, other.matched);
  alignment.summary = is_one_clock(alignment, timeline)
                          ? "the ranks were recorded on one clock, in one capture: nothing was shifted"
                          : summary_of(alignment);
  return alignment;
}

void apply_alignment(Timeline& timeline, const ClockAlignment& alignment) {
  std::vector<const ClockCurve*> curves(timeline.processes.size(), nullptr);
  bool moves = false;
  for (const RankClock& clock : alignment.ranks) {
    // Differences of 64-bit times fit, except extreme ones, which are not applied.
    if (!clock.is_shifted || !clock.offset_ns || std::fabs(*clock.offset_ns) > 9e18) continue;
    curves[clock.process] = &clock.curve;
    moves = true;
  }
  timeline.clock_error_ns = std::max(timeline.clock_error_ns, alignment.error_ns);
  timeline.notes.push_back(alignment.summary);
  if (!moves) return;
  const auto move = [&](auto& what, std::uint16_t process) {
    if (curves[process] != nullptr) shift(what, [&](std::int64_t ns) { return curves[process]->distance_ns(ns); });
  };
  for (Span& span : timeline.spans)
    if (span.stream < timeline.streams.size())
      move(span, timeline.devices[timeline.streams[span.stream].device].process);
  for (HostCall& call : timeline.calls) move(call, call.process);
  for (TraceRange& range : timeline.ranges) move(range, range.process);
  for (MemoryChange& change : timeline.memory) move(change, timeline.devices[change.device].process);
  sort_by_start(timeline);
}

void shift_clock(Timeline& timeline, std::int64_t ns) noexcept {
  // Times on one clock are never that far apart.
  const auto back = [by = ns == INT64_MIN ? INT64_MAX : -ns](std::int64_t) { return by; };
  for (Span& span : timeline.spans) shift(span, back);
  for (HostCall& call : timeline.calls) shift(call, back);
  for (TraceRange& range : timeline.ranges) shift(range, back);
  for (MemoryChange& change : timeline.memory) shift(change, back);
}

}  // namespace weir
