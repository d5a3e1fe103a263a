#include "lab/race/suspects.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
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

// One place in the program: calls of the same names and streams that meet in the same way.
using PlaceKey = std::array<std::uint64_t, 6>;
struct KeyHash {
  std::size_t operator()(const PlaceKey& key) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t part : key) hash = (hash ^ part) * 0x9e3779b97f4a7c15u ^ hash >> 31;
    return hash;
  }
};
struct SuspectGroup {
  std::vector<Suspect> nearest;  // best first
  std::uint32_t repeats = 0;
};

class Grouping {
 public:
  explicit Grouping(const Log& log) : log_(log) {}

  void add(const MeetingPair& pair) {
    const Call &first = log_.calls[pair.first], &second = log_.calls[pair.second];
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
    put({key_of(first), key_of(second), first.stream, second.stream, static_cast<std::uint64_t>(pair.meeting), 0},
        suspect);
  }
  void add(const HostMeeting& meeting) {
    const Call& copy = log_.calls[meeting.copy];
    Suspect suspect{meeting.copy, kHost, meeting.begin, meeting.end, false};
    suspect.score = kHostScores[static_cast<std::size_t>(meeting.wait)];
    put({key_of(copy), 0, copy.stream, kHost, static_cast<std::uint64_t>(meeting.wait), meeting.writes ? 1u : 0u},
        suspect);
  }

  Suspects take(std::size_t limit) {
    Suspects suspects;
    for (auto& [key, group] : groups_) {
      suspects.found += group.repeats;
      for (Suspect& suspect : group.nearest) {
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
  static std::uint64_t key_of(const Call& call) {
    return std::uint64_t{call.label} << 8 | static_cast<std::uint8_t>(call.kind);
  }
  void put(const PlaceKey& key, const Suspect& suspect) {
    SuspectGroup& group = groups_[key];
    ++group.repeats;
    const auto place = std::upper_bound(group.nearest.begin(), group.nearest.end(), suspect,
                                        [](const Suspect& a, const Suspect& b) { return a.score > b.score; });
    if (place == group.nearest.end() && group.nearest.size() == kMostAlike) return;
    group.nearest.insert(place, suspect);
    if (group.nearest.size() > kMostAlike) group.nearest.pop_back();
  }

  const Log& log_;
  std::unordered_map<PlaceKey, SuspectGroup, KeyHash> groups_;
};

}  // namespace

Suspects find_suspects(const Log& log, std::size_t limit) {
  const std::vector<Extent> extents = extents_of(log);
  Grouping grouping(log);
  const std::uint64_t cut = find_meetings(log, extents, [&](const MeetingPair& pair) { grouping.add(pair); });
  find_host_meetings(log, extents, [&](const HostMeeting& meeting) { grouping.add(meeting); });
  Suspects suspects = grouping.take(limit);
  suspects.cut = cut;
  return suspects;
}

}  // namespace weir::race
