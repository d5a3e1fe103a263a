#include "trace/collective_match.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "measure/statistics.h"
#include "trace/device_spans.h"

namespace weir {
namespace {

constexpr std::size_t kMaxSampled = 256;  // pairs that are examined to judge a shift
constexpr std::size_t kMinPairs = 3;
constexpr std::int64_t kMaxShift = 2000;  // collectives that a trace may lack at its start
// A shift must be this much steadier than one that is closer to zero.
constexpr double kClearlySteadier = 0.67;
// Ends that deviate by less than this fraction of the usual distance between collectives leave no doubt about the
// shift.
constexpr double kSteady = 0.1;

// Subtracts as integers: epoch nanoseconds as doubles are 256 ns apart.
double distance_of(const Timeline& timeline, const CollectiveFacts& reference, const CollectiveFacts& other) {
  const std::int64_t from = timeline.spans[reference.span].ended_ns, to = timeline.spans[other.span].ended_ns;
  return static_cast<double>(
      static_cast<std::int64_t>(static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from)));
}

bool sizes_agree(const CollectiveFacts& a, const CollectiveFacts& b) {
  return a.bytes == 0 || b.bytes == 0 || a.bytes == b.bytes;
}

class Fitter {
 public:
  Fitter(const Timeline& timeline, const std::vector<CollectiveFacts>& reference,
         const std::vector<CollectiveFacts>& other)
      : timeline_(timeline), reference_(reference), other_(other) {}

  // Empty where the shift leaves too few pairs, or one in ten pairs differs in size.
  std::optional<SequenceFit> at(std::int64_t shift) {
    const auto n = static_cast<std::int64_t>(reference_.size()), m = static_cast<std::int64_t>(other_.size());
    const std::int64_t first = std::max<std::int64_t>(0, -shift), last = std::min(m, n - shift);
    if (last <= first) return std::nullopt;
    const auto overlap = static_cast<std::size_t>(last - first);
    const std::size_t shorter = std::min(reference_.size(), other_.size());
    const bool is_whole = shift == 0 && n == m;
    if (!is_whole && (overlap < kMinPairs || overlap * 2 < shorter)) return std::nullopt;
    const std::size_t step = (overlap + kMaxSampled - 1) / kMaxSampled;
    std::size_t sampled = 0, differ = 0;
    distances_.clear();
    for (std::int64_t i = first; i < last; i += static_cast<std::int64_t>(step), ++sampled) {
      const CollectiveFacts& theirs = other_[static_cast<std::size_t>(i)];
      const CollectiveFacts& ours = reference_[static_cast<std::size_t>(i + shift)];
      if (sizes_agree(ours, theirs))
        distances_.push_back(distance_of(timeline_, ours, theirs));
      else
        ++differ;
    }
    if (distances_.empty() || differ * 10 > sampled) return std::nullopt;
    SequenceFit fit{shift, overlap, median(distances_), 0, {}};
    for (double& distance : distances_) distance = std::fabs(distance - fit.distance_ns);
    fit.spread_ns = median(distances_);
    return fit;
  }

  // The shift at which the distance of ends is closest to `expected_ns`. Collectives are in order, so a binary search
  // finds it.
  std::optional<SequenceFit> near(double expected_ns) {
    const std::size_t middle = other_.size() / 2;
    const auto nearest = std::lower_bound(reference_.begin(), reference_.end(), expected_ns,
                                          [&](const CollectiveFacts& ours, double expected) {
                                            return distance_of(timeline_, ours, other_[middle]) > expected;
                                          });
    const std::int64_t guess = (nearest - reference_.begin()) - static_cast<std::int64_t>(middle);
    std::optional<SequenceFit> best;
    for (std::int64_t shift = guess - 2; shift <= guess + 2; ++shift) {
      const auto fit = at(shift);
      if (fit && (!best || std::fabs(fit->distance_ns - expected_ns) < std::fabs(best->distance_ns - expected_ns)))
        best = fit;
    }
    return best;
  }

  // How far apart collectives usually are.
  double usual_distance() const {
    std::vector<double> apart;
    const std::size_t step = (reference_.size() + kMaxSampled - 1) / kMaxSampled;
    for (std::size_t i = 1; i < reference_.size(); i += step)
      apart.push_back(distance_of(timeline_, reference_[i - 1], reference_[i]));
    return apart.empty() ? 0 : median(apart);
  }

 private:
  const Timeline& timeline_;
  const std::vector<CollectiveFacts>& reference_;
  const std::vector<CollectiveFacts>& other_;
  std::vector<double> distances_;
};

}  // namespace

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

std::optional<SequenceFit> fit_sequences(const Timeline& timeline, const std::vector<CollectiveFacts>& reference,
                                         const std::vector<CollectiveFacts>& other, std::optional<double> expected_ns) {
  if (reference.empty() || other.empty()) return std::nullopt;
  Fitter fitter(timeline, reference, other);
  if (expected_ns) return fitter.near(*expected_ns);
  // Ranks of one host share a clock: where that explains the ends, no other shift is considered. Iterations look alike,
  // so a shift by a whole iteration would fit about as well.
  const double steady = kSteady * fitter.usual_distance();
  if (const auto fit = fitter.near(0); fit && fit->spread_ns <= steady && std::fabs(fit->distance_ns) <= steady)
    return fit;
  std::optional<SequenceFit> best;
  std::vector<SequenceFit> fits;
  const auto most = static_cast<std::int64_t>(std::max(reference.size(), other.size()));
  for (std::int64_t size = 0; size < std::min(most, kMaxShift); ++size) {
    for (const std::int64_t shift : {size, -size}) {
      const auto fit = fitter.at(shift);
      if (fit) fits.push_back(*fit);
      if (fit && (!best || fit->spread_ns < kClearlySteadier * best->spread_ns)) best = fit;
      if (size == 0) break;
    }
  }
  // Equal counts on both sides: traces of the same iterations.
  if (!best || (best->shift == 0 && reference.size() == other.size())) return best;
  for (const SequenceFit& fit : fits)
    if (fit.shift != best->shift && !best->rival_ns && kClearlySteadier * fit.spread_ns <= best->spread_ns)
      best->rival_ns = fit.distance_ns;
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
      const auto fit = fit_sequences(aligned, sequence.collectives[reference], theirs, 0);
      if (!fit) continue;
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        const std::int64_t at = static_cast<std::int64_t>(i) + fit->shift;
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
