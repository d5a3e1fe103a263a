#include "lab/race/meetings.h"

#include <algorithm>
#include <vector>

#include "lab/race/order.h"

namespace weir::race {
namespace {

// More than a run of 10^6 commands needs, and a bound where each touches all of a memory that is cut into many pieces.
constexpr std::uint64_t kMostVisits = 300'000'000;
constexpr std::uint32_t kFewPieces = 64;

enum class Reach : std::uint8_t { far, near, exact };

// The last access of a stream to a piece of memory.
struct Seen {
  Moment moment;
  std::uint32_t call = 0, range = 0;
  Reach reach = Reach::far;
  bool writes = false;
};

// Accesses that only may reach so far are many, and two of those say nothing: a piece keeps the latest few.
constexpr std::size_t kMostFar = 8;
// Of a command that nothing orders with many others, the nearest are enough; fewer, once there are many such commands.
constexpr std::size_t kMostMet = 32, kFewMet = 4;
constexpr std::uint64_t kManyMet = 3'000'000;

struct Piece {
  std::vector<Seen> sure, far;
};

// The calls of one capture, or all that ran.
class World {
 public:
  World(const Log& log, std::span<const Extent> extents, std::uint32_t capture, std::vector<std::uint32_t> calls,
        std::vector<std::uint32_t>& met_at)
      : log_(log), extents_(extents), order_(log, capture), calls_(std::move(calls)), met_at_(met_at) {
    for (const std::uint32_t call : calls_) {
      if (!is_command(log.calls[call].kind)) continue;
      for_ranges(call, [&](std::uint32_t range) {
        const Extent& extent = extents_[range];
        for (const std::uint64_t at : {extent.begin, extent.near_end, extent.far_end}) borders_.push_back(at);
      });
      // Launches of one graph have the same ranges again and again.
      if (borders_.size() > 2 * sorted_ + 4096) sort_borders();
    }
    sort_borders();
    pieces_.resize(borders_.size());
  }

  std::uint64_t run(const std::function<void(const MeetingPair&)>& found) {
    for (const std::uint32_t call : calls_) {
      order_.take(call);
      if (!is_command(log_.calls[call].kind) || log_.calls[call].stream >= log_.streams.size()) continue;
      // A wait for a word in memory, or a write of it, is how streams order themselves.
      if (log_.calls[call].kind == Kind::memory_operation) continue;
      met_.clear();
      is_full_ = false;
      // What is surer goes first, because of the limit.
      for_ranges(call, [&](std::uint32_t range) { access_near(call, range); });
      for_ranges(call, [&](std::uint32_t range) { access_far(call, range); });
      for (const MeetingPair& pair : met_) found(pair);
      all_met_ += met_.size();
      cut_ += is_full_ ? 1 : 0;
    }
    return cut_;
  }

 private:
  template <class Visit>
  void for_ranges(std::uint32_t call, Visit&& visit) {
    const Call& mine = log_.calls[call];
    for (std::uint32_t i = mine.first_range; i < mine.first_range + mine.range_count; ++i)
      if (extents_[i].begin < extents_[i].near_end) visit(i);
  }
  void sort_borders() {
    std::sort(borders_.begin(), borders_.end());
    borders_.erase(std::unique(borders_.begin(), borders_.end()), borders_.end());
    sorted_ = borders_.size();
  }
  std::uint32_t piece_at(std::uint64_t border) const {
    return static_cast<std::uint32_t>(std::lower_bound(borders_.begin(), borders_.end(), border) - borders_.begin());
  }

  void access_near(std::uint32_t call, std::uint32_t range) {
    const Range& what = log_.ranges[range];
    const Seen mine{order_.now(), call, range, what.is_exact ? Reach::exact : Reach::near, what.writes};
    for_pieces(extents_[range].begin, extents_[range].near_end, [&](Piece& piece) {
      compare_all(piece.sure, mine);
      compare_all(piece.far, mine);
      std::erase_if(piece.far, [&](const Seen& other) { return stands_for(mine, other); });
      std::erase_if(piece.sure, [&](const Seen& other) { return stands_for(mine, other); });
      piece.sure.push_back(mine);
    });
  }
  void access_far(std::uint32_t call, std::uint32_t range) {
    const Seen mine{order_.now(), call, range, Reach::far, log_.ranges[range].writes};
    for_pieces(extents_[range].near_end, extents_[range].far_end, [&](Piece& piece) {
      compare_all(piece.sure, mine);
      std::erase_if(piece.far, [&](const Seen& other) { return stands_for(mine, other); });
      if (piece.far.size() == kMostFar) piece.far.erase(piece.far.begin());
      piece.far.push_back(mine);
    });
  }

  template <class Visit>
  void for_pieces(std::uint64_t from, std::uint64_t to, Visit&& visit) {
    if (from == to) return;
    const std::uint32_t begin = piece_at(from);
    std::uint32_t end = piece_at(to);
    if (visits_ > kMostVisits && end - begin > kFewPieces) {
      end = begin + kFewPieces;
      ++cut_;
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      visits_ += 1 + pieces_[i].sure.size() + pieces_[i].far.size();
      visit(pieces_[i]);
    }
  }
  // Latest first: those are the nearest.
  void compare_all(const std::vector<Seen>& others, const Seen& mine) {
    for (std::size_t i = others.size(); i-- > 0 && !is_full_;)
      if ((others[i].writes || mine.writes) && !is_over(others[i], mine)) meet(others[i], mine);
  }
  bool stands_for(const Seen& mine, const Seen& other) const {
    return mine.reach >= other.reach && (mine.writes || !other.writes) && is_over(other, mine);
  }
  bool is_over(const Seen& other, const Seen& mine) const {
    return other.moment.lane == mine.moment.lane || order_.is_after(other.moment);
  }
  void meet(const Seen& other, const Seen& mine) {
    const Extent &a = extents_[other.range], &b = extents_[mine.range];
    MeetingPair pair{other.call, mine.call};
    const auto end_of = [](const Extent& extent, Reach reach) {
      return reach == Reach::far ? extent.far_end : extent.near_end;
    };
    pair.begin = std::max(a.begin, b.begin);
    pair.end = std::min(end_of(a, other.reach), end_of(b, mine.reach));
    const Reach weaker = std::min(other.reach, mine.reach);
    pair.meeting = weaker == Reach::exact ? Meeting::exact
                   : weaker == Reach::far ? Meeting::rest
                   : a.begin == b.begin   ? Meeting::same_pointer
                                          : Meeting::near;
    const auto is_known = [&](const Seen& seen) { return seen.reach == Reach::exact && seen.writes; };
    pair.is_write_known = is_known(other) || is_known(mine);
    const auto is_likely = [](const Extent& extent, const Seen& seen) {
      return extent.is_likely_output && seen.reach != Reach::far;
    };
    pair.is_write_likely = is_likely(a, other) || is_likely(b, mine);
    // Two commands meet in many pieces and by several operands; the surest is what to say of them.
    const std::uint32_t known = met_at_[pair.first];
    if (known < met_.size() && met_[known].first == pair.first) {
      if (pair.meeting > met_[known].meeting) met_[known] = pair;
      return;
    }
    if (met_.size() >= (all_met_ > kManyMet ? kFewMet : kMostMet)) {
      is_full_ = true;
      return;
    }
    met_at_[pair.first] = static_cast<std::uint32_t>(met_.size());
    met_.push_back(pair);
  }

  const Log& log_;
  std::span<const Extent> extents_;
  Order order_;
  std::vector<std::uint32_t> calls_;
  std::vector<std::uint64_t> borders_;  // of the pieces that ranges cut memory into
  std::size_t sorted_ = 0;
  std::vector<Piece> pieces_;
  std::vector<MeetingPair> met_;        // of the call at hand
  std::vector<std::uint32_t>& met_at_;  // where in `met_` an earlier call may be, by call
  bool is_full_ = false;                // there were more
  std::uint64_t visits_ = 0, all_met_ = 0, cut_ = 0;
};

}  // namespace

std::uint64_t find_meetings(const Log& log, std::span<const Extent> extents,
                            const std::function<void(const MeetingPair&)>& found) {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> worlds;  // by capture; 0: what ran
  std::vector<std::uint32_t> captures;                                   // in the order of the log
  for (std::uint32_t i = 0; i < log.calls.size(); ++i) {
    const Call& call = log.calls[i];
    if (call.is_captured && call.capture == 0) continue;
    const std::uint32_t capture = call.is_captured ? call.capture : 0;
    auto& calls = worlds[capture];
    if (calls.empty()) captures.push_back(capture);
    calls.push_back(i);
  }
  std::uint64_t cut = 0;
  std::vector<std::uint32_t> met_at(log.calls.size(), 0);
  for (const std::uint32_t capture : captures)
    cut += World(log, extents, capture, std::move(worlds[capture]), met_at).run(found);
  return cut;
}

}  // namespace weir::race
