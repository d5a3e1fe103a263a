#include "trace/collective_match.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "measure/statistics.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::size_t kMaxSampled = 256;  // pairs that are examined to judge a shift

// How far ends are from `expected_ns` apart, by median. Empty without pairs, or where one in ten differs in size.
std::optional<double> misfit_at(const Timeline& timeline, const std::vector<CollectiveFacts>& reference,
                                const std::vector<CollectiveFacts>& other, std::int64_t shift,
                                std::int64_t expected_ns) {
  const auto n = static_cast<std::int64_t>(reference.size()), m = static_cast<std::int64_t>(other.size());
  const std::int64_t first = std::max<std::int64_t>(0, -shift), last = std::min(m, n - shift);
  if (last <= first) return std::nullopt;
  const std::size_t step = (static_cast<std::size_t>(last - first) + kMaxSampled - 1) / kMaxSampled;
  std::size_t sampled = 0;
  std::vector<double> misfits;
  for (std::int64_t i = first; i < last; i += static_cast<std::int64_t>(step), ++sampled) {
    const CollectiveFacts& theirs = other[static_cast<std::size_t>(i)];
    const CollectiveFacts& ours = reference[static_cast<std::size_t>(i + shift)];
    if (!sizes_agree(ours, theirs)) continue;
    const std::int64_t distance = minus(timeline.spans[theirs.span].ended_ns, timeline.spans[ours.span].ended_ns);
    misfits.push_back(static_cast<double>(minus(distance, expected_ns)));
  }
  if (misfits.empty() || (sampled - misfits.size()) * 10 > sampled) return std::nullopt;
  return std::fabs(median(misfits));
}

}  // namespace

bool sizes_agree(const CollectiveFacts& a, const CollectiveFacts& b) noexcept {
  return a.bytes == 0 || b.bytes == 0 || a.bytes == b.bytes || a.kind == CollectiveKind::all_to_all;
}

std::vector<CollectiveSequence> collective_sequences(const Timeline& timeline) {
  using Key = std::pair<std::uint32_t, CollectiveKind>;
  std::map<Key, std::map<std::uint16_t, std::vector<CollectiveFacts>>> found;
  for (const CollectiveFacts& facts : timeline.collectives) {
    if (facts.kind == CollectiveKind::unknown || facts.span >= timeline.spans.size()) continue;
    const Span& span = timeline.spans[facts.span];
    if (!is_timed(span) || span.stream >= timeline.streams.size()) continue;
    found[{facts.group, facts.kind}][timeline.streams[span.stream].device].push_back(facts);
  }
  std::vector<CollectiveSequence> sequences;
  for (auto& [key, by_device] : found) {
    if (by_device.size() < 2) continue;
    CollectiveSequence sequence{key.second, key.first, {}, {}};
    std::uint32_t ranks = 0;
    for (const auto& [device, all] : by_device) {
      sequence.devices.push_back(device);
      for (const CollectiveFacts& facts : all) ranks = std::max(ranks, facts.ranks);
    }
    if (ranks != 0 && by_device.size() > ranks) continue;
    // With more than two ranks, the trace does not show who sent to whom.
    if (sequence.kind == CollectiveKind::send_receive && by_device.size() > 2) continue;
    const auto rank_of = [&](std::uint16_t device) {
      return timeline.processes[timeline.devices[device].process].rank;
    };
    std::stable_sort(sequence.devices.begin(), sequence.devices.end(),
                     [&](std::uint16_t a, std::uint16_t b) { return rank_of(a) < rank_of(b); });
    for (const std::uint16_t device : sequence.devices) {
      auto& all = sequence.collectives.emplace_back(std::move(by_device[device]));
      std::stable_sort(all.begin(), all.end(), [&](const CollectiveFacts& a, const CollectiveFacts& b) {
        return timeline.spans[a.span].started_ns < timeline.spans[b.span].started_ns;
      });
    }
    sequences.push_back(std::move(sequence));
  }
  std::stable_sort(sequences.begin(), sequences.end(), [](const CollectiveSequence& a, const CollectiveSequence& b) {
    return a.collectives.front().size() > b.collectives.front().size();
  });
  return sequences;
}

std::optional<std::int64_t> shift_near(const Timeline& timeline, const std::vector<CollectiveFacts>& reference,
                                       const std::vector<CollectiveFacts>& other, std::int64_t expected_ns) {
  if (reference.empty() || other.empty()) return std::nullopt;
  // Collectives are in order, so a binary search finds the neighbourhood.
  const std::size_t middle = other.size() / 2;
  const std::int64_t wanted = minus(timeline.spans[other[middle].span].ended_ns, expected_ns);
  const auto nearest = std::lower_bound(
      reference.begin(), reference.end(), wanted,
      [&](const CollectiveFacts& ours, std::int64_t ns) { return timeline.spans[ours.span].ended_ns < ns; });
  const std::int64_t guess = (nearest - reference.begin()) - static_cast<std::int64_t>(middle);
  std::optional<std::int64_t> best;
  double least = INFINITY;
  for (std::int64_t shift = guess - 2; shift <= guess + 2; ++shift) {
    const auto misfit = misfit_at(timeline, reference, other, shift, expected_ns);
    if (!misfit || *misfit >= least) continue;
    least = *misfit;
    best = shift;
  }
  return best;
}

std::vector<MatchedCollective> match_collectives(const Timeline& aligned, const std::vector<bool>& is_aligned) {
  std::vector<MatchedCollective> matches;
  for (const CollectiveSequence& sequence : collective_sequences(aligned)) {
    std::size_t reference = SIZE_MAX;
    std::vector<MatchedCollective> own;  // by position in the reference's sequence
    for (std::size_t k = 0; k < sequence.devices.size(); ++k) {
      const std::uint16_t device = sequence.devices[k];
      const std::uint16_t process = aligned.devices[device].process;
      if (process >= is_aligned.size() || !is_aligned[process]) continue;
      const std::vector<CollectiveFacts>& theirs = sequence.collectives[k];
      if (reference == SIZE_MAX) {
        reference = k;
        for (const CollectiveFacts& facts : theirs) {
          MatchedCollective& match = own.emplace_back();
          match.kind = sequence.kind;
          match.group = sequence.group;
          match.bytes = facts.bytes;
          match.participants.push_back({device, facts.span});
        }
        continue;
      }
      const auto shift = shift_near(aligned, sequence.collectives[reference], theirs, 0);
      if (!shift) continue;
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        const std::int64_t at = static_cast<std::int64_t>(i) + *shift;
        if (at < 0 || at >= static_cast<std::int64_t>(own.size())) continue;
        const auto place = static_cast<std::size_t>(at);
        if (!sizes_agree(sequence.collectives[reference][place], theirs[i])) continue;
        own[place].participants.push_back({device, theirs[i].span});
        own[place].bytes = std::max(own[place].bytes, theirs[i].bytes);
      }
    }
    for (MatchedCollective& match : own)
      if (match.participants.size() >= 2) matches.push_back(std::move(match));
  }
  const auto first_start = [&](const MatchedCollective& match) {
    std::int64_t first = INT64_MAX;
    for (const Participant& one : match.participants) first = std::min(first, aligned.spans[one.span].started_ns);
    return first;
  };
  std::stable_sort(matches.begin(), matches.end(), [&](const MatchedCollective& a, const MatchedCollective& b) {
    return first_start(a) < first_start(b);
  });
  return matches;
}

}  // namespace weir
