#include "trace/rank_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "measure/statistics.h"
#include "trace/collective_match.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

struct Arrivals {
  std::int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
  Participant last;
};

Arrivals arrivals_of(const Timeline& timeline, const MatchedCollective& match) {
  Arrivals found;
  for (const Participant& one : match.participants) {
    const std::int64_t started = timeline.spans[one.span].started_ns;
    found.first_ns = std::min(found.first_ns, started);
    if (started <= found.last_ns) continue;
    found.last_ns = started;
    found.last = one;
  }
  return found;
}

// Matches only among the ranks that were aligned.
std::vector<MatchedCollective> matches_of(const Timeline& aligned, const ClockAlignment& alignment) {
  std::vector<bool> is_aligned(aligned.processes.size(), false);
  for (const RankClock& clock : alignment.ranks)
    if (clock.offset_ns) is_aligned[clock.process] = true;
  return match_collectives(aligned, is_aligned);
}

using DeviceSet = std::vector<std::uint16_t>;

DeviceSet devices_of(const MatchedCollective& match) {
  DeviceSet devices;
  for (const Participant& one : match.participants) devices.push_back(one.device);
  return devices;
}

// Skew over the set of devices that has the most arrivals: instances times devices.
void add_skew(const Timeline& timeline, const std::vector<MatchedCollective>& matches, double clock_error_ns,
              RankCollectives& found) {
  std::map<DeviceSet, std::size_t> sets;
  for (const MatchedCollective& match : matches) ++sets[devices_of(match)];
  const auto largest = std::max_element(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
    return a.first.size() * a.second < b.first.size() * b.second;
  });
  found.skew_devices = largest->first;
  std::vector<std::vector<Arrival>> arrivals(found.skew_devices.size());
  for (std::uint32_t i = 0; i < matches.size(); ++i) {
    if (devices_of(matches[i]) != found.skew_devices) continue;
    for (std::size_t k = 0; k < arrivals.size(); ++k)
      arrivals[k].push_back({i, 0, timeline.spans[matches[i].participants[k].span].started_ns});
  }
  found.skew = rank_skew(arrivals, clock_error_ns);
  found.stragglers = find_stragglers(found.skew, {});
  for (Straggler& straggler : found.stragglers) {
    const std::uint16_t device = found.skew_devices[static_cast<std::size_t>(straggler.rank)];
    const std::uint16_t process = timeline.devices[device].process;
    straggler.rank = timeline.processes[process].rank;
    const bool is_alone = std::none_of(found.skew_devices.begin(), found.skew_devices.end(), [&](std::uint16_t other) {
      return other != device && timeline.devices[other].process == process;
    });
    if (!is_alone) straggler.reason = fmt::format("{} {}", timeline.devices[device].label, straggler.reason);
  }
  if (!found.skew) return;
  for (std::size_t k = 0; k < found.skew_devices.size(); ++k) {
    for (RankWait& rank : found.ranks) {
      if (rank.device != found.skew_devices[k]) continue;
      rank.last_share = found.skew->last_share[k];
      rank.behind_ns = found.skew->behind_ns[k];
    }
  }
}

void add_kinds(const std::map<CollectiveKind, std::vector<double>>& spreads,
               const std::map<CollectiveKind, double>& waits, RankCollectives& found) {
  for (const auto& [kind, all] : spreads) {
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    found.kinds.push_back({kind, sorted.size(), quantile_sorted(sorted, 0.50), quantile_sorted(sorted, 0.95),
                           sorted.back(), waits.at(kind)});
  }
  std::stable_sort(found.kinds.begin(), found.kinds.end(),
                   [](const KindSkew& a, const KindSkew& b) { return a.waiting_ns > b.waiting_ns; });
}

void add_rank_spans(const Timeline& timeline, std::map<std::uint16_t, RankWait>& by_device) {
  std::map<std::uint16_t, std::pair<std::int64_t, std::int64_t>> ranges;
  for (const Span& span : timeline.spans) {
    if (!is_device_work(span) || span.stream >= timeline.streams.size()) continue;
    const auto [at, is_new] = ranges.try_emplace(timeline.streams[span.stream].device, span.started_ns, span.ended_ns);
    if (is_new) continue;
    at->second.first = std::min(at->second.first, span.started_ns);
    at->second.second = std::max(at->second.second, span.ended_ns);
  }
  for (auto& [device, rank] : by_device) {
    const auto range = ranges.find(device);
    if (range == ranges.end() || range->second.second <= range->second.first) continue;
    rank.wait_share = rank.waiting_ns / length_between(range->second.first, range->second.second);
  }
}

}  // namespace

std::vector<std::uint32_t> slice_places(const Timeline& timeline) {
  std::vector<std::uint32_t> counts(timeline.devices.size()), places(timeline.spans.size(), UINT32_MAX);
  for (std::size_t i = 0; i < timeline.spans.size(); ++i)
    if (const std::uint16_t stream = timeline.spans[i].stream; stream < timeline.streams.size())
      places[i] = counts[timeline.streams[stream].device]++;
  return places;
}

std::vector<std::vector<LastArrival>> last_arrivals(const Timeline& aligned, std::span<const std::uint32_t> places,
                                                    const std::optional<ClockAlignment>& alignment) {
  std::vector<std::vector<LastArrival>> found(aligned.devices.size());
  if (!alignment) return found;
  for (const MatchedCollective& match : matches_of(aligned, *alignment)) {
    const Arrivals arrivals = arrivals_of(aligned, match);
    const int rank = aligned.processes[aligned.devices[arrivals.last.device].process].rank;
    for (const Participant& one : match.participants)
      found[one.device].push_back({places[one.span], arrivals.last_ns, rank});
  }
  return found;
}

RankCollectives rank_collectives(const Timeline& aligned, const std::optional<ClockAlignment>& alignment) {
  RankCollectives found;
  if (!alignment) {
    found.reason = "the trace has one rank only";
    return found;
  }
  if (!alignment->is_aligned) found.reason = alignment->summary;
  const std::vector<MatchedCollective> matches = matches_of(aligned, *alignment);
  found.matched = matches.size();
  if (matches.empty()) {
    if (found.reason.empty()) found.reason = "no collective is common to two ranks";
    return found;
  }
  std::map<std::uint16_t, RankWait> by_device;
  std::map<CollectiveKind, std::vector<double>> spreads;
  std::map<CollectiveKind, double> waits;
  for (const MatchedCollective& match : matches) {
    const Arrivals arrivals = arrivals_of(aligned, match);
    spreads[match.kind].push_back(length_between(arrivals.first_ns, arrivals.last_ns));
    for (const Participant& one : match.participants) {
      const Span& span = aligned.spans[one.span];
      RankWait& rank = by_device[one.device];
      ++rank.collectives;
      rank.collective_ns += length_between(span.started_ns, span.ended_ns);
      // A rank may leave before the last one arrives: the root of a broadcast, or a clock that is slightly off.
      const double waited = length_between(span.started_ns, std::min(arrivals.last_ns, span.ended_ns));
      rank.waiting_ns += waited;
      waits[match.kind] += waited;
    }
    const int last_rank = aligned.processes[aligned.devices[arrivals.last.device].process].rank;
    keep_worst(found.worst,
               {match.kind, match.group, match.bytes, arrivals.first_ns, arrivals.last_ns, last_rank,
                arrivals.last.device, arrivals.last.span},
               kMaxSkewed, [](const SkewedCollective& a, const SkewedCollective& b) {
                 return distance_ns(a.first_ns, a.last_ns) > distance_ns(b.first_ns, b.last_ns);
               });
  }
  add_rank_spans(aligned, by_device);
  for (auto& [device, rank] : by_device) {
    rank.device = device;
    rank.rank = aligned.processes[aligned.devices[device].process].rank;
    found.ranks.push_back(rank);
  }
  std::stable_sort(found.ranks.begin(), found.ranks.end(),
                   [](const RankWait& a, const RankWait& b) { return a.rank < b.rank; });
  add_kinds(spreads, waits, found);
  add_skew(aligned, matches, alignment->error_ns, found);
  return found;
}

}  // namespace weir
