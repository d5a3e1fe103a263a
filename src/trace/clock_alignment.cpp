#include "trace/clock_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/units.h"
#include "measure/statistics.h"
#include "trace/collective_match.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"
#include "trace/merge.h"

namespace weir {
namespace {

constexpr std::size_t kMinMatched = 3;
constexpr double kClearOffset = 2;  // in errors; a smaller offset may only be the way ranks leave collectives
constexpr std::size_t kMinForDrift = 30;
constexpr double kShortestForDrift = 1e9;
constexpr std::size_t kMaxIndirect = 256;  // ranks among which chains of common groups are searched

// Collectives that ranks leave together. The root of a broadcast or a reduce may leave before the others have arrived.
bool ends_together(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all ||
         kind == CollectiveKind::barrier || kind == CollectiveKind::send_receive;
}

struct Pairs {
  std::vector<double> at_ns;        // times of the reference, since its first
  std::vector<double> distance_ns;  // other minus reference
  std::optional<double> rival_ns;   // another distance that other pairs would give just as steadily
};

double difference(std::int64_t from, std::int64_t to) {
  return to >= from ? length_between(from, to) : -length_between(to, from);
}

// Sequences by process; each process is represented by its first device.
class Sequences {
 public:
  explicit Sequences(const Timeline& timeline) : timeline_(timeline), sequences_(collective_sequences(timeline)) {
    std::erase_if(sequences_, [](const CollectiveSequence& sequence) { return !ends_together(sequence.kind); });
    by_process_.resize(timeline.processes.size());
    for (std::uint32_t i = 0; i < sequences_.size(); ++i) {
      for (std::uint32_t k = 0; k < sequences_[i].devices.size(); ++k) {
        auto& places = by_process_[timeline.devices[sequences_[i].devices[k]].process];
        if (places.empty() || places.back().sequence != i) places.push_back({i, k});
      }
    }
  }

  bool has_any(std::uint16_t process) const { return !by_process_[process].empty(); }

  // Ends of all collectives that two processes share. The longest sequence determines the distance of the clocks; the
  // others follow it.
  Pairs common_ends(std::uint16_t reference, std::uint16_t process) const {
    Pairs pairs;
    std::optional<double> expected;
    std::int64_t first_ns = INT64_MAX;
    auto theirs = by_process_[process].begin();
    for (const Place& ours : by_process_[reference]) {
      while (theirs != by_process_[process].end() && theirs->sequence < ours.sequence) ++theirs;
      if (theirs == by_process_[process].end()) break;
      if (theirs->sequence != ours.sequence) continue;
      add(sequences_[ours.sequence].collectives[ours.device], sequences_[ours.sequence].collectives[theirs->device],
          expected, first_ns, pairs);
    }
    return pairs;
  }

 private:
  struct Place {
    std::uint32_t sequence = 0, device = 0;
  };

  void add(const std::vector<CollectiveFacts>& ours, const std::vector<CollectiveFacts>& theirs,
           std::optional<double>& expected, std::int64_t& first_ns, Pairs& pairs) const {
    const auto fit = fit_sequences(timeline_, ours, theirs, expected);
    if (!fit) return;
    if (!expected) {
      expected = fit->distance_ns;
      pairs.rival_ns = fit->rival_ns;
    }
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i) + fit->shift;
      if (at < 0 || at >= static_cast<std::int64_t>(ours.size())) continue;
      const CollectiveFacts &a = ours[static_cast<std::size_t>(at)], &b = theirs[i];
      if (a.bytes != 0 && b.bytes != 0 && a.bytes != b.bytes) continue;
      const std::int64_t ended = timeline_.spans[a.span].ended_ns;
      if (first_ns == INT64_MAX) first_ns = ended;
      pairs.at_ns.push_back(difference(first_ns, ended));
      pairs.distance_ns.push_back(difference(ended, timeline_.spans[b.span].ended_ns));
    }
  }

  const Timeline& timeline_;
  std::vector<CollectiveSequence> sequences_;
  std::vector<std::vector<Place>> by_process_;
};

// Change of the distance from the first to the last third of the trace, in parts per million.
std::optional<double> drift_of(const Pairs& pairs, double error_ns) {
  if (pairs.at_ns.size() < kMinForDrift) return std::nullopt;
  const auto [first, last] = std::minmax_element(pairs.at_ns.begin(), pairs.at_ns.end());
  const double length = *last - *first;
  if (length < kShortestForDrift) return std::nullopt;
  std::vector<double> early, late, early_at, late_at;
  for (std::size_t i = 0; i < pairs.at_ns.size(); ++i) {
    if (pairs.at_ns[i] < *first + length / 3) {
      early.push_back(pairs.distance_ns[i]);
      early_at.push_back(pairs.at_ns[i]);
    } else if (pairs.at_ns[i] > *last - length / 3) {
      late.push_back(pairs.distance_ns[i]);
      late_at.push_back(pairs.at_ns[i]);
    }
  }
  if (early.size() < kMinMatched || late.size() < kMinMatched) return std::nullopt;
  const double change = median(late) - median(early);
  // The middle half of each third shows how well its median is known.
  const double noise =
      (quantile(early, 0.75) - quantile(early, 0.25) + quantile(late, 0.75) - quantile(late, 0.25)) / 2;
  if (std::fabs(change) <= std::max(noise, 0.1 * error_ns)) return std::nullopt;
  return change / (median(late_at) - median(early_at)) * 1e6;
}

// `base_ns` and `base_error_ns` belong to the rank that the pairs are compared with.
void align(RankClock& clock, const Pairs& pairs, double base_ns, double base_error_ns) {
  clock.matched = std::max(clock.matched, pairs.distance_ns.size());
  if (pairs.distance_ns.size() < kMinMatched) return;
  const double distance = median(pairs.distance_ns);
  std::vector<double> deviations;
  for (const double one : pairs.distance_ns) deviations.push_back(std::fabs(one - distance));
  const double error = quantile(deviations, 0.9);
  clock.offset_ns = base_ns + distance;
  clock.error_ns = base_error_ns + error;
  clock.drift_ppm = drift_of(pairs, error);
  if (pairs.rival_ns)
    clock.reason =
        fmt::format("iterations are so alike that other pairs of collectives fit as well: the offset may be {} off",
                    format_duration(std::fabs(*pairs.rival_ns - distance)));
}

// Processes whose times were written by one recorder share a clock, so an offset known for one holds for all; the one
// with the smallest error is used. Returns whether a rank got an offset this way.
bool share_clocks(ClockAlignment& alignment, const Timeline& timeline) {
  std::unordered_map<std::int32_t, const RankClock*> best;
  const auto clock_of = [&](const RankClock& rank) { return timeline.processes[rank.process].clock; };
  for (const RankClock& rank : alignment.ranks) {
    if (clock_of(rank) < 0 || !rank.offset_ns) continue;
    const RankClock*& known = best[clock_of(rank)];
    const bool is_better = known == nullptr || rank.process == alignment.reference ||
                           (known->process != alignment.reference && *rank.error_ns < *known->error_ns);
    if (is_better) known = &rank;
  }
  bool has_changed = false;
  for (RankClock& rank : alignment.ranks) {
    const auto known = best.find(clock_of(rank));
    if (known == best.end() || known->second == &rank) continue;
    has_changed |= !rank.offset_ns.has_value();
    rank.offset_ns = known->second->offset_ns;
    rank.error_ns = known->second->error_ns;
    rank.drift_ppm = known->second->drift_ppm;
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
void align_by_others(ClockAlignment& alignment, const Sequences& sequences, const Timeline& timeline) {
  if (alignment.ranks.size() > kMaxIndirect) return;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (RankClock& clock : alignment.ranks) {
      for (std::size_t i = 0; i < alignment.ranks.size() && !clock.offset_ns; ++i) {
        const RankClock& via = alignment.ranks[i];
        if (!via.offset_ns || via.process == alignment.reference) continue;
        align(clock, sequences.common_ends(via.process, clock.process), *via.offset_ns, *via.error_ns);
        has_changed |= clock.offset_ns.has_value();
      }
    }
    has_changed |= share_clocks(alignment, timeline);
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
  std::size_t shifted = 0, without = 0;
  const std::string* reason = nullptr;
  for (const RankClock& clock : alignment.ranks) {
    shifted += clock.is_shifted ? 1 : 0;
    if (clock.offset_ns) continue;
    ++without;
    if (reason == nullptr) reason = &clock.reason;
  }
  if (without > 0)
    return fmt::format("the clocks of {} of {} ranks could not be aligned: {}", without, alignment.ranks.size(),
                       *reason);
  if (shifted == 0)
    return fmt::format("the ranks' clocks agree to within {} (ends of common collectives); nothing was shifted",
                       format_duration(alignment.error_ns));
  return fmt::format("{} of {} ranks were shifted onto one clock by the ends of common collectives, to within {}",
                     shifted, alignment.ranks.size(), format_duration(alignment.error_ns));
}

std::int64_t shifted(std::int64_t ns, std::int64_t by) noexcept {
  if (ns == kNoTime) return kNoTime;
  std::int64_t moved = 0;
  return __builtin_sub_overflow(ns, by, &moved) ? kNoTime : moved;
}

void shift(Span& span, std::int64_t by) noexcept {
  for (std::int64_t Span::* time : {&Span::enqueued_ns, &Span::submitted_ns, &Span::accepted_ns, &Span::launched_ns,
                                    &Span::started_ns, &Span::ended_ns, &Span::seen_ns})
    span.*time = shifted(span.*time, by);
}

// For calls and ranges.
template <class Stretch>
void shift(Stretch& stretch, std::int64_t by) noexcept {
  stretch.started_ns = shifted(stretch.started_ns, by);
  stretch.ended_ns = shifted(stretch.ended_ns, by);
}

}  // namespace

std::optional<ClockAlignment> align_clocks(const Timeline& timeline) {
  const std::vector<Range> ranges = ranges_of(timeline);
  ClockAlignment alignment;
  for (std::uint16_t process = 0; process < ranges.size(); ++process)
    if (ranges[process].from_ns <= ranges[process].to_ns)
      alignment.ranks.push_back({process, timeline.processes[process].rank, 0, {}, {}, {}, false, {}});
  if (alignment.ranks.size() < 2) return std::nullopt;
  std::stable_sort(alignment.ranks.begin(), alignment.ranks.end(),
                   [](const RankClock& a, const RankClock& b) { return a.rank < b.rank; });
  const Sequences sequences(timeline);
  // The reference is the first rank that has collectives to align on.
  alignment.reference = alignment.ranks.front().process;
  for (const RankClock& clock : alignment.ranks) {
    if (!sequences.has_any(clock.process)) continue;
    alignment.reference = clock.process;
    break;
  }
  const int reference_rank = timeline.processes[alignment.reference].rank;
  for (RankClock& clock : alignment.ranks) {
    if (clock.process == alignment.reference)
      clock.offset_ns = clock.error_ns = 0;
    else
      align(clock, sequences.common_ends(alignment.reference, clock.process), 0, 0);
  }
  share_clocks(alignment, timeline);
  align_by_others(alignment, sequences, timeline);
  alignment.is_aligned = true;
  for (RankClock& clock : alignment.ranks) {
    alignment.is_aligned &= clock.offset_ns.has_value();
    alignment.error_ns = std::max(alignment.error_ns, clock.error_ns.value_or(0));
    if (!clock.offset_ns)
      clock.reason = reason_for(clock, reference_rank, ranges[alignment.reference], ranges[clock.process]);
  }
  // The worst rank shows how far apart ranks may leave a collective on one clock; some always leave a little later.
  double left_ns = 0;
  for (RankClock& clock : alignment.ranks) {
    if (!clock.offset_ns) continue;
    clock.is_shifted = std::fabs(*clock.offset_ns) > kClearOffset * alignment.error_ns;
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
  std::vector<std::int64_t> by(timeline.processes.size(), 0);
  bool moves = false;
  for (const RankClock& clock : alignment.ranks) {
    // Differences of 64-bit times fit, except extreme ones, which are not applied.
    if (!clock.is_shifted || !clock.offset_ns || std::fabs(*clock.offset_ns) > 9e18) continue;
    by[clock.process] = std::llround(*clock.offset_ns);
    moves = true;
  }
  timeline.clock_error_ns = std::max(timeline.clock_error_ns, alignment.error_ns);
  timeline.notes.push_back(alignment.summary);
  if (!moves) return;
  for (Span& span : timeline.spans) {
    if (span.stream >= timeline.streams.size()) continue;
    const std::int64_t offset = by[timeline.devices[timeline.streams[span.stream].device].process];
    if (offset == 0) continue;
    shift(span, offset);
  }
  for (HostCall& call : timeline.calls) shift(call, by[call.process]);
  for (TraceRange& range : timeline.ranges) shift(range, by[range.process]);
  sort_by_start(timeline);
}

void shift_clock(Timeline& timeline, std::int64_t ns) noexcept {
  // Times on one clock are never that far apart.
  const std::int64_t back = ns == INT64_MIN ? INT64_MAX : -ns;
  for (Span& span : timeline.spans) shift(span, back);
  for (HostCall& call : timeline.calls) shift(call, back);
  for (TraceRange& range : timeline.ranges) shift(range, back);
}

}  // namespace weir
