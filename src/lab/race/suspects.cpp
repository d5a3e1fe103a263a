#include "lab/race/suspects.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lab/race/extents.h"
#include "lab/race/host_meetings.h"
#include "lab/race/meetings.h"

namespace weir::race {
namespace {

// Kinds of meetings are a point apart; a known write, and how near the two are, decide among equals.
constexpr double kWriteKnown = 0.3, kWriteLikely = 0.2, kFewBetween = 0.5, kSoonAfter = 0.1;
constexpr double kFewCalls = 16, kSoonNs = 100'000;
constexpr double kHostScores[] = {0.6, 0.3, 0.1};  // by HostWait

// One place in the program: calls of the same names and streams.
using PlaceKey = std::array<std::uint64_t, 4>;
struct SuspectGroup {
  std::vector<Suspect> best;  // by rank
  std::uint32_t repeats = 0;
};

std::uint64_t label_key(const Call& call) {
  return std::uint64_t{call.label} << 8 | static_cast<std::uint8_t>(call.kind);
}
PlaceKey place_of(const Log& log, std::uint32_t first, std::uint32_t second) {
  const Call& one = log.calls[first];
  if (second == kHost) return {label_key(one), 0, one.stream, kHost};
  return {label_key(one), label_key(log.calls[second]), one.stream, log.calls[second].stream};
}

Suspect suspect_of(const Log& log, const MeetingPair& pair) {
  const Call &first = log.calls[pair.first], &second = log.calls[pair.second];
  Suspect suspect{pair.first, pair.second, pair.begin, pair.end, pair.meeting == Meeting::exact};
  // Of hostile logs: the difference of any two numbers.
  const auto apart = static_cast<std::uint64_t>(second.time_ns) - static_cast<std::uint64_t>(first.time_ns);
  suspect.apart_ns = std::max<std::int64_t>(0, static_cast<std::int64_t>(apart));
  suspect.score = static_cast<double>(pair.meeting) +
                  (pair.is_write_known    ? kWriteKnown
                   : pair.is_write_likely ? kWriteLikely
                                          : 0) +
                  kFewBetween / (1 + static_cast<double>(pair.second - pair.first) / kFewCalls) +
                  kSoonAfter / (1 + static_cast<double>(suspect.apart_ns) / kSoonNs);
  return suspect;
}

// Hands over each pair, and what tells its place from others' of the same calls: how they meet. Returns what was cut.
std::uint64_t each_suspect(const Log& log, const std::function<void(const Suspect&, std::uint64_t)>& use) {
  const std::vector<Extent> extents = extents_of(log);
  const auto use_pair = [&](const MeetingPair& pair) {
    use(suspect_of(log, pair), static_cast<std::uint64_t>(pair.meeting));
  };
  const std::uint64_t cut = find_meetings(log, extents, use_pair);
  find_host_meetings(
      log, extents,
      [&](const HostMeeting& meeting) {
        Suspect suspect{meeting.copy, kHost, meeting.begin, meeting.end, false};
        suspect.score = kHostScores[static_cast<std::size_t>(meeting.wait)];
        use(suspect, static_cast<std::uint64_t>(meeting.wait) * 2 + (meeting.writes ? 1 : 0));
      },
      use_pair);
  return cut;
}

class Grouping {
 public:
  Grouping(const Log& log, bool takes_earliest) : log_(log), takes_earliest_(takes_earliest) {}

  void add(const Suspect& suspect, std::uint64_t how) {
    SuspectGroup& group = groups_[{place_of(log_, suspect.first, suspect.second), how}];
    ++group.repeats;
    const auto place = std::upper_bound(group.best.begin(), group.best.end(), suspect,
                                        [&](const Suspect& a, const Suspect& b) { return rank(a) < rank(b); });
    if (place == group.best.end() && group.best.size() == kMostAlike) return;
    group.best.insert(place, suspect);
    if (group.best.size() > kMostAlike) group.best.pop_back();
  }

  Suspects take(std::size_t limit) {
    Suspects suspects;
    for (auto& [key, group] : groups_) {
      suspects.found += group.repeats;
      for (Suspect& suspect : group.best) {
        suspect.repeats = group.repeats;
        suspects.pairs.push_back(suspect);
      }
    }
    std::sort(suspects.pairs.begin(), suspects.pairs.end(), [](const Suspect& a, const Suspect& b) {
      return std::tuple(-a.score, a.first, a.second) < std::tuple(-b.score, b.first, b.second);
    });
    if (suspects.pairs.size() > limit) suspects.pairs.resize(limit);
    return suspects;
  }

 private:
  double rank(const Suspect& suspect) const {
    return takes_earliest_ ? static_cast<double>(suspect.first) : -suspect.score;
  }

  const Log& log_;
  bool takes_earliest_;
  std::map<std::pair<PlaceKey, std::uint64_t>, SuspectGroup> groups_;
};

}  // namespace

Suspects find_suspects(const Log& log, std::size_t limit) {
  Grouping grouping(log, false);
  const std::uint64_t cut =
      each_suspect(log, [&](const Suspect& suspect, std::uint64_t how) { grouping.add(suspect, how); });
  Suspects suspects = grouping.take(limit);
  suspects.cut = cut;
  return suspects;
}

Suspects find_suspects_among(const Log& log, const std::vector<bool>& firsts, std::size_t limit) {
  Grouping grouping(log, true);
  each_suspect(log, [&](const Suspect& suspect, std::uint64_t how) {
    if (suspect.first < firsts.size() && firsts[suspect.first]) grouping.add(suspect, how);
  });
  return grouping.take(limit);
}

std::vector<Suspect> repeats_of(const Log& log, const Suspect& suspect, std::size_t limit) {
  std::vector<Suspect> found{suspect};
  const PlaceKey place = place_of(log, suspect.first, suspect.second);
  each_suspect(log, [&](const Suspect& other, std::uint64_t) {
    const bool is_itself = other.first == suspect.first && other.second == suspect.second;
    if (found.size() < limit && !is_itself && place_of(log, other.first, other.second) == place) found.push_back(other);
  });
  return found;
}

}  // namespace weir::race
