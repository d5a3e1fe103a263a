#include "trace/clock_pairs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trace/intervals.h"
#include "trace/sequence_shifts.h"

namespace weir {
namespace {

constexpr std::size_t kMaxOthers = 512;  // collectives of the other sequences that are examined

// Collectives that ranks leave together. The root of a broadcast or a reduce may leave before the others have arrived.
bool ends_together(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all ||
         kind == CollectiveKind::barrier || kind == CollectiveKind::send_receive;
}

// What the other groups and kinds say about a shift: each collective must have a partner near the time at which the
// shift expects it.
struct Others {
  double misfit = 0, differ = 0;
  std::size_t count = 0, unique = 0;  // unique: the only one of its sequence on both sides, and paired

  void compare(const Timeline& timeline, const SequenceShifts& shifts, const SequenceShift& shift,
               const EndSequence& from, const EndSequence& among, bool is_ours) {
    // Between pairs of the shift on both sides.
    const TimeInterval range = shifts.range(shift, is_ours);
    const auto first = std::upper_bound(from.ends.begin(), from.ends.end(), range.from_ns);
    for (auto i = static_cast<std::size_t>(first - from.ends.begin());
         i < from.size() && from.ends[i] < range.to_ns && count < kMaxOthers; ++i) {
      const std::int64_t distance = shifts.distance_at(shift, from.ends[i], is_ours);
      const std::int64_t expected = minus(from.ends[i], is_ours ? minus(0, distance) : distance);
      auto after = std::lower_bound(among.ends.begin(), among.ends.end(), expected);
      if (after == among.ends.end() ||
          (after != among.ends.begin() && minus(expected, after[-1]) < minus(*after, expected)))
        --after;
      ++count;
      const double off = std::fabs(static_cast<double>(minus(*after, expected)));
      misfit += shifts.misfit(off);
      if (from.size() == 1 && among.size() == 1 && off <= shifts.tolerated_ns()) ++unique;
      const CollectiveFacts& partner = among.facts[static_cast<std::size_t>(after - among.ends.begin())];
      for (std::size_t mark = 0; mark < kMarks; ++mark) {
        const auto a = mark_of(timeline, from.facts[i], mark), b = mark_of(timeline, partner, mark);
        differ += a != 0 && b != 0 && a != b ? 1 : 0;
      }
    }
  }
};

void exclude_by_others(std::vector<Others>& others, std::vector<SequenceShift>& possible) {
  std::size_t most = 0;
  for (const Others& one : others) most = std::max(most, one.count);
  // Shifts that cover more collectives have more misfits where none of them fits: rates are compared, of those shifts
  // that cover enough.
  const auto least_rate = [&](double Others::* what) {
    double least = INFINITY;
    for (const Others& one : others)
      if (one.count > 0 && one.count * 2 >= most) least = std::min(least, one.*what / static_cast<double>(one.count));
    return std::isfinite(least) ? least : 0;
  };
  const auto exclude = [&](auto is_excluded) {
    std::size_t kept = 0;
    for (std::size_t k = 0; k < others.size(); ++k) {
      if (is_excluded(others[k])) continue;
      others[kept] = others[k];
      possible[kept++] = possible[k];
    }
    others.resize(kept);
    possible.resize(kept);
  };
  const double misfit = least_rate(&Others::misfit);
  exclude([&](const Others& one) {
    return one.misfit - misfit * static_cast<double>(one.count) > SequenceShifts::explained_misfit(one.count);
  });
  const double differ = least_rate(&Others::differ);
  if (differ <= kMayDiffer)
    exclude([&](const Others& one) { return one.differ - differ * static_cast<double>(one.count) >= 1; });
  std::size_t unique = 0;
  for (const Others& one : others) unique = std::max(unique, one.unique);
  exclude([&](const Others& one) { return one.unique < unique; });
}

}  // namespace

ClockPairing::ClockPairing(const Timeline& timeline)
    : timeline_(timeline), sequences_(collective_sequences(timeline)), by_process_(timeline.processes.size()) {
  std::erase_if(sequences_, [](const CollectiveSequence& sequence) { return !ends_together(sequence.kind); });
  for (std::uint32_t i = 0; i < sequences_.size(); ++i) {
    for (std::uint32_t k = 0; k < sequences_[i].devices.size(); ++k) {
      auto& places = by_process_[timeline.devices[sequences_[i].devices[k]].process];
      if (places.empty() || places.back().sequence != i) places.push_back({i, k});
    }
  }
}

ClockPairs ClockPairing::common_ends(std::uint16_t our_process, std::uint16_t their_process) const {
  std::vector<std::pair<EndSequence, EndSequence>> common;
  const std::vector<Place>& places = by_process_[their_process];
  auto place = places.begin();
  for (const Place& ours : by_process_[our_process]) {
    while (place != places.end() && place->sequence < ours.sequence) ++place;
    if (place == places.end()) break;
    if (place->sequence != ours.sequence) continue;
    const auto& all = sequences_[ours.sequence].collectives;
    common.emplace_back(EndSequence(timeline_, all[ours.device]), EndSequence(timeline_, all[place->device]));
  }
  ClockPairs pairs;
  if (common.empty()) return pairs;
  pairs.has_common = true;
  // The sequence with the most pairs decides; the others are asked where it leaves a choice, and follow it.
  std::stable_sort(common.begin(), common.end(), [](const auto& a, const auto& b) {
    return std::min(a.first.size(), a.second.size()) > std::min(b.first.size(), b.second.size());
  });
  SequenceShifts shifts(timeline_, common[0].first, common[0].second);
  std::vector<SequenceShift> possible = shifts.possible();
  if (possible.empty()) return pairs;
  if (possible.size() > 1 && common.size() > 1) {
    std::vector<Others> others(possible.size());
    for (std::size_t k = 0; k < possible.size(); ++k) {
      // The shortest first: rare collectives say the most, and only so many are examined.
      for (std::size_t i = common.size(); i-- > 1;) {
        others[k].compare(timeline_, shifts, possible[k], common[i].second, common[i].first, false);
        others[k].compare(timeline_, shifts, possible[k], common[i].first, common[i].second, true);
      }
    }
    exclude_by_others(others, possible);
  }
  shifts.exclude_worse(possible);
  const SequenceShift best = shifts.most_plausible(possible);
  for (const SequenceShift& other : possible) {
    if (other.by == best.by) continue;
    const double away = std::fabs(static_cast<double>(minus(other.distance_ns, best.distance_ns)));
    pairs.rival_ns = std::min(pairs.rival_ns.value_or(INFINITY), away);
  }
  for (std::size_t s = 0; s < common.size(); ++s) {
    const auto& [ours, theirs] = common[s];
    std::int64_t by = best.by;
    if (s > 0) {
      const std::int64_t middle = theirs.ends[theirs.size() / 2];
      const auto near = shift_near(timeline_, ours.facts, theirs.facts, shifts.distance_at(best, middle, false));
      if (!near) continue;
      by = *near;
    }
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i) + by;
      if (at < 0 || at >= static_cast<std::int64_t>(ours.size())) continue;
      const auto place = static_cast<std::size_t>(at);
      if (sizes_agree(ours.facts[place], theirs.facts[i])) pairs.ends.push_back({ours.ends[place], theirs.ends[i]});
    }
  }
  return pairs;
}

}  // namespace weir
