#include "trace/clock_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <utility>

#include "measure/statistics.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::size_t kMinPairs = 3;
constexpr std::int64_t kMaxShift = 2000;  // collectives that a trace may lack at its start
constexpr std::size_t kRun = 64;          // neighbours that are examined together
constexpr std::size_t kMaxSampled = 512;  // pairs of the longest sequence that are examined to judge a shift
constexpr std::size_t kMaxOthers = 512;   // collectives of the other sequences
constexpr double kMayDiffer = 0.1;        // share of the pairs; above it a mark excludes a shift
// Differences from one pair to the next are measured in the best shift's median difference. Evidence is a logarithm of
// likelihoods: 6 alone is convincing.
constexpr double kOutlier = 4;
constexpr double kConvincing = 6;
// What equal shifts differ by through noise, times the square root of the count of steps: 1.25 for the spread.
constexpr double kOutlierNoise = 1, kSpreadNoise = 2;
constexpr double kBeyondNoise = 2;  // times both: no noise reaches that
constexpr double kFewSteps = 12;    // over the count of steps: with few, one shift is much steadier by chance
constexpr double kHopeless = 20;    // a shift with steps that many times the steadiest one's is not the best
constexpr double kAgree = 0.1;  // clocks that agree to within this part of the distance of collectives are one clock

// Collectives that ranks leave together. The root of a broadcast or a reduce may leave before the others have arrived.
bool ends_together(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all ||
         kind == CollectiveKind::barrier || kind == CollectiveKind::send_receive;
}

// By end.
struct Sequence {
  std::vector<CollectiveFacts> facts;
  std::vector<std::int64_t> ends;

  Sequence(const Timeline& timeline, std::vector<CollectiveFacts> all) : facts(std::move(all)) {
    const auto end_of = [&](const CollectiveFacts& one) { return timeline.spans[one.span].ended_ns; };
    std::stable_sort(facts.begin(), facts.end(),
                     [&](const CollectiveFacts& a, const CollectiveFacts& b) { return end_of(a) < end_of(b); });
    for (const CollectiveFacts& one : facts) ends.push_back(end_of(one));
  }
  std::size_t size() const noexcept { return ends.size(); }
};

enum Mark : std::size_t { kSequenceNumber, kSize, kName, kMarks };

// What must be equal for all ranks of a collective; 0 where it is not known.
std::uint64_t mark_of(const Timeline& timeline, const CollectiveFacts& facts, std::size_t mark) {
  if (mark == kSequenceNumber) return facts.sequence;
  if (mark == kSize) return facts.bytes;
  const std::uint32_t name = timeline.spans[facts.span].name;
  return name == kNoName ? 0 : std::uint64_t{name} + 1;
}

struct Shift {
  std::int64_t by = 0;                                // the other's i-th collective is ours number i + by
  std::size_t first = 0, last = 0;                    // theirs that have a partner
  std::int64_t distance_ns = 0;                       // median of theirs minus ours
  double trend_ns = 0;                                // median change of the distance from one pair to the next
  double step_ns = 0;                                 // typical size of that change beyond the median
  double cost = 0;                                    // mean over the steps
  std::array<std::size_t, kMarks> known{}, differ{};  // by mark: pairs

  bool differs(std::size_t mark) const noexcept {
    return static_cast<double>(differ[mark]) > kMayDiffer * static_cast<double>(known[mark]);
  }
};

// Weighs the shifts of one sequence against another.
class Shifts {
 public:
  Shifts(const Timeline& timeline, Sequence ours, Sequence theirs)
      : timeline_(timeline), ours_(std::move(ours)), theirs_(std::move(theirs)) {}

  // The shifts that marks and steadiness leave. Empty where none has enough pairs.
  std::vector<Shift> possible() {
    std::vector<Shift> all = candidates();
    for (std::size_t mark = 0; mark < kMarks; ++mark) exclude_by(mark, all);
    if (all.empty()) return all;
    step_ns_ = resolution();
    double steadiest = INFINITY;
    for (const Shift& shift : all)
      if (shift.last - shift.first >= kMinPairs) steadiest = std::min(steadiest, shift.step_ns);
    if (std::isfinite(steadiest)) step_ns_ = std::max(step_ns_, steadiest);
    for (Shift& shift : all) shift.cost = shift.step_ns <= kHopeless * step_ns_ ? mean_cost(shift) : INFINITY;
    // Marks come between: where noise alone decides, the right shift is not always the steadiest.
    exclude_worse(all, kBeyondNoise);
    for (std::size_t mark = 0; mark < kMarks; ++mark) keep_by(mark, all);
    return all;
  }

  // Excludes those that are less steady than the best of them.
  void exclude_worse(std::vector<Shift>& shifts, double times = 1) const {
    const Shift best = *std::min_element(shifts.begin(), shifts.end(), [](const Shift& a, const Shift& b) {
      return std::pair(a.cost, std::abs(a.by)) < std::pair(b.cost, std::abs(b.by));
    });
    std::erase_if(shifts, [&](const Shift& shift) { return shift.by != best.by && is_worse(shift, best, times); });
  }

  // Of several shifts: the one at which the clocks agree, else the one nearest to sequences that begin together.
  const Shift& most_plausible(const std::vector<Shift>& shifts) const {
    const double agree = kAgree * usual_distance();
    const auto key = [&](const Shift& shift) {
      const double apart = std::fabs(static_cast<double>(shift.distance_ns));
      return std::pair(apart <= agree ? 0 : 1, std::abs(shift.by));
    };
    return *std::min_element(shifts.begin(), shifts.end(),
                             [&](const Shift& a, const Shift& b) { return key(a) < key(b); });
  }

  // Their clock minus ours near a time of theirs, or of ours.
  std::int64_t distance_at(const Shift& shift, std::int64_t ns, bool is_ours) const {
    const std::vector<std::int64_t>& ends = is_ours ? ours_.ends : theirs_.ends;
    const std::int64_t by = is_ours ? shift.by : 0;
    const auto first = ends.begin() + static_cast<std::ptrdiff_t>(shift.first) + by;
    const auto last = ends.begin() + static_cast<std::ptrdiff_t>(shift.last) + by;
    const auto after = std::lower_bound(first, last, ns);
    const std::size_t i = shift.first + static_cast<std::size_t>((after == last ? after - 1 : after) - first);
    return distance(shift, i);
  }
  bool covers(const Shift& shift, std::int64_t ns, bool is_ours) const {
    const std::vector<std::int64_t>& ends = is_ours ? ours_.ends : theirs_.ends;
    const std::size_t by = is_ours ? static_cast<std::size_t>(shift.by) : 0;  // wraps, as the sum does
    return ns > ends[shift.first + by] && ns < ends[shift.last - 1 + by];
  }
  double step_ns() const noexcept { return step_ns_; }
  const Sequence& ours() const noexcept { return ours_; }
  const Sequence& theirs() const noexcept { return theirs_; }

 private:
  std::int64_t distance(const Shift& shift, std::size_t i) const {
    return minus(theirs_.ends[i], ours_.ends[i + static_cast<std::size_t>(shift.by)]);
  }

  // Positions of theirs that are examined: all, or runs of neighbours, so that patterns are not aliased.
  template <class Visit>
  void sample(std::size_t first, std::size_t last, Visit visit) const {
    const std::size_t n = theirs_.size();
    const std::size_t stride = n <= kMaxSampled ? kRun : kRun * ((n + kMaxSampled - 1) / kMaxSampled);
    for (std::size_t run = 0; run < n; run += stride) {
      const std::size_t to = std::min({n, run + kRun + 1, last});
      for (std::size_t i = std::max(run, first); i < to; ++i) visit(i, i > std::max(run, first));
    }
  }

  std::vector<Shift> candidates() {
    std::vector<Shift> found;
    const auto n = static_cast<std::int64_t>(ours_.size()), m = static_cast<std::int64_t>(theirs_.size());
    const std::size_t shorter = std::min(ours_.size(), theirs_.size());
    const std::int64_t most = std::min(std::max(n, m), kMaxShift);
    const bool has_numbers = ours_.facts[0].sequence != 0 && theirs_.facts[0].sequence != 0;
    for (std::int64_t by = -most; by <= most; ++by) {
      Shift shift;
      shift.by = by;
      const std::int64_t first = std::max<std::int64_t>(0, -by), last = std::min(m, n - by);
      const bool is_whole = by == 0 && n == m;
      if (last <= first) continue;
      shift.first = static_cast<std::size_t>(first);
      shift.last = static_cast<std::size_t>(last);
      const std::size_t pairs = shift.last - shift.first;
      if (!is_whole && pairs < kMinPairs - 1) continue;
      const bool is_half = is_whole || pairs * 2 >= shorter;
      if (!is_half && !has_numbers) continue;
      examine(shift);
      if (is_half || (shift.known[kSequenceNumber] == pairs && shift.differ[kSequenceNumber] == 0))
        found.push_back(shift);
    }
    return found;
  }

  void examine(Shift& shift) {
    const std::int64_t base = distance(shift, shift.first);
    distances_.clear();
    steps_.clear();
    sample(shift.first, shift.last, [&](std::size_t i, bool has_step) {
      for (std::size_t mark = 0; mark < kMarks; ++mark) {
        const auto ours = mark_of(timeline_, ours_.facts[i + static_cast<std::size_t>(shift.by)], mark);
        const auto theirs = mark_of(timeline_, theirs_.facts[i], mark);
        if (ours == 0 || theirs == 0) continue;
        ++shift.known[mark];
        shift.differ[mark] += ours != theirs ? 1 : 0;
      }
      distances_.push_back(static_cast<double>(minus(distance(shift, i), base)));
      if (has_step) steps_.push_back(step(shift, i));
    });
    if (!distances_.empty())
      shift.distance_ns = minus(base, -static_cast<std::int64_t>(std::llround(median(distances_))));
    if (!steps_.empty()) shift.trend_ns = median(steps_);
    for (double& step : steps_) step = std::fabs(step - shift.trend_ns);
    // Of normal values both are the median; times of coarse resolution have a median of 0.
    if (!steps_.empty()) shift.step_ns = std::max(median(steps_), quantile(steps_, 0.75) / 1.7);
  }

  // A mark that no shift explains (sizes of uneven exchanges, names of different versions) excludes none.
  static void exclude_by(std::size_t mark, std::vector<Shift>& shifts) {
    const auto differs = [&](const Shift& shift) { return shift.differs(mark); };
    if (std::all_of(shifts.begin(), shifts.end(), differs)) return;
    std::erase_if(shifts, differs);
  }

  // Collectives of different sizes are never the same one. Leaves the shifts with the fewest pairs that differ, and of
  // those the ones that the most unique values vote for.
  void keep_by(std::size_t mark, std::vector<Shift>& shifts) const {
    std::size_t least = SIZE_MAX;
    for (const Shift& shift : shifts)
      if (!shift.differs(mark)) least = std::min(least, shift.differ[mark]);
    std::erase_if(shifts, [&](const Shift& shift) { return shift.differ[mark] > least; });
    keep_most(shifts, votes(mark));
  }

  // How often a shift pairs values that each of the two sequences has once.
  std::map<std::int64_t, std::size_t> votes(std::size_t mark) const {
    struct Seen {
      std::size_t ours = 0, theirs = 0;
      std::int64_t by = 0;
    };
    std::unordered_map<std::uint64_t, Seen> seen;
    for (std::size_t i = 0; i < ours_.size(); ++i) {
      Seen& one = seen[mark_of(timeline_, ours_.facts[i], mark)];
      ++one.ours;
      one.by += static_cast<std::int64_t>(i);
    }
    for (std::size_t i = 0; i < theirs_.size(); ++i) {
      Seen& one = seen[mark_of(timeline_, theirs_.facts[i], mark)];
      ++one.theirs;
      one.by -= static_cast<std::int64_t>(i);
    }
    std::map<std::int64_t, std::size_t> found;
    for (const auto& [value, one] : seen)
      if (value != 0 && one.ours == 1 && one.theirs == 1) ++found[one.by];
    return found;
  }
  static void keep_most(std::vector<Shift>& shifts, const std::map<std::int64_t, std::size_t>& votes) {
    const auto of = [&](const Shift& shift) {
      const auto found = votes.find(shift.by);
      return found == votes.end() ? 0 : found->second;
    };
    std::size_t most = 0;
    for (const Shift& shift : shifts) most = std::max(most, of(shift));
    std::erase_if(shifts, [&](const Shift& shift) { return of(shift) < most; });
  }

  // Change of the distance from the pair before, beyond that of a drifting clock; at a wrong shift, two different gaps
  // are compared.
  double step(const Shift& shift, std::size_t i) const {
    return static_cast<double>(minus(distance(shift, i), distance(shift, i - 1))) - shift.trend_ns;
  }
  double cost(const Shift& shift, std::size_t i) const {
    const double x = step(shift, i) / step_ns_;
    return std::log1p(x * x);
  }
  double outlier_cost(const Shift& shift, std::size_t i) const {
    return 2 * std::max(0.0, std::log(std::fabs(step(shift, i)) / (kOutlier * step_ns_)));
  }

  double mean_cost(const Shift& shift) const {
    double sum = 0, count = 0;
    sample(shift.first, shift.last, [&](std::size_t i, bool has_step) {
      if (!has_step) return;
      sum += cost(shift, i);
      ++count;
    });
    return count > 0 ? sum / count : INFINITY;
  }

  bool is_worse(const Shift& shift, const Shift& best, double times) const {
    double spread = 0, outliers = 0, count = 0;
    const double enough = 4 * (kConvincing + kFewSteps + kOutlierNoise * std::sqrt(static_cast<double>(kMaxSampled)));
    sample(std::max(shift.first, best.first), std::min(shift.last, best.last), [&](std::size_t i, bool has_step) {
      if (!has_step || outliers > enough) return;
      spread += cost(shift, i) - cost(best, i);
      outliers += outlier_cost(shift, i) - outlier_cost(best, i);
      ++count;
    });
    if (count == 0) return false;
    const double root = std::sqrt(count), least = kConvincing + kFewSteps / count;
    return outliers > times * (least + kOutlierNoise * root) || spread > times * (least + kSpreadNoise * root);
  }

  // Whole microseconds make unequal gaps look equal, and equal ones unequal by 1.
  double resolution() const {
    const auto is_whole = [](std::int64_t ns) { return ns % 1000 == 0; };
    const bool are_whole = std::all_of(ours_.ends.begin(), ours_.ends.end(), is_whole) &&
                           std::all_of(theirs_.ends.begin(), theirs_.ends.end(), is_whole);
    return are_whole ? 1000 : 1;
  }

  double usual_distance() const {
    std::vector<double> apart;
    for (std::size_t i = 1; i < std::min(ours_.size(), kMaxSampled); ++i)
      apart.push_back(static_cast<double>(minus(ours_.ends[i], ours_.ends[i - 1])));
    return apart.empty() ? 0 : median(apart);
  }

  const Timeline& timeline_;
  Sequence ours_, theirs_;
  double step_ns_ = 1;
  std::vector<double> distances_, steps_;
};

// What the other groups and kinds say about a shift: each collective must have a partner near the time at which the
// shift expects it.
struct Others {
  double misfit = 0, differ = 0;
  double unpaired = 0;  // less 1 for each collective that each of the two has once, and that finds the other
  std::size_t count = 0;

  void compare(const Timeline& timeline, const Shifts& shifts, const Shift& shift, const Sequence& from,
               const Sequence& among, bool is_ours) {
    for (std::size_t i = 0; i < from.size() && count < kMaxOthers; ++i) {
      if (!shifts.covers(shift, from.ends[i], is_ours)) continue;
      const std::int64_t distance = shifts.distance_at(shift, from.ends[i], is_ours);
      const std::int64_t expected = is_ours ? minus(from.ends[i], -distance) : minus(from.ends[i], distance);
      auto after = std::lower_bound(among.ends.begin(), among.ends.end(), expected);
      if (after == among.ends.end() ||
          (after != among.ends.begin() && minus(expected, after[-1]) < minus(*after, expected)))
        --after;
      ++count;
      const double off = std::fabs(static_cast<double>(minus(*after, expected)));
      const double tolerated = kOutlier * kOutlier * shifts.step_ns();
      misfit += 2 * std::max(0.0, std::log(off / tolerated));
      if (from.size() == 1 && among.size() == 1 && off <= tolerated) --unpaired;
      const CollectiveFacts& partner = among.facts[static_cast<std::size_t>(after - among.ends.begin())];
      for (std::size_t mark = 0; mark < kMarks; ++mark) {
        const auto a = mark_of(timeline, from.facts[i], mark), b = mark_of(timeline, partner, mark);
        differ += a != 0 && b != 0 && a != b ? 1 : 0;
      }
    }
  }
};

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
  std::vector<std::pair<Sequence, Sequence>> common;
  const std::vector<Place>& places = by_process_[their_process];
  auto place = places.begin();
  for (const Place& ours : by_process_[our_process]) {
    while (place != places.end() && place->sequence < ours.sequence) ++place;
    if (place == places.end()) break;
    if (place->sequence != ours.sequence) continue;
    const auto& all = sequences_[ours.sequence].collectives;
    common.emplace_back(Sequence(timeline_, all[ours.device]), Sequence(timeline_, all[place->device]));
  }
  ClockPairs pairs;
  if (common.empty()) return pairs;
  // The sequence with the most pairs decides; the others are asked where it leaves a choice, and follow it.
  std::stable_sort(common.begin(), common.end(), [](const auto& a, const auto& b) {
    return std::min(a.first.size(), a.second.size()) > std::min(b.first.size(), b.second.size());
  });
  Shifts shifts(timeline_, common[0].first, common[0].second);
  std::vector<Shift> possible = shifts.possible();
  if (possible.empty()) return pairs;
  if (possible.size() > 1 && common.size() > 1) {
    std::vector<Others> others(possible.size());
    for (std::size_t k = 0; k < possible.size(); ++k) {
      for (std::size_t i = 1; i < common.size(); ++i) {
        others[k].compare(timeline_, shifts, possible[k], common[i].second, common[i].first, false);
        others[k].compare(timeline_, shifts, possible[k], common[i].first, common[i].second, true);
      }
    }
    const auto excluded = [&](double Others::* what, double limit) {
      double least = INFINITY;
      for (const Others& one : others) least = std::min(least, one.*what);
      std::size_t kept = 0;
      for (std::size_t k = 0; k < others.size(); ++k) {
        const double noise = what == &Others::misfit ? kOutlierNoise * std::sqrt(others[k].count) : 0;
        if (others[k].*what - least > limit + noise) continue;
        others[kept] = others[k];
        possible[kept++] = possible[k];
      }
      others.resize(kept);
      possible.resize(kept);
    };
    excluded(&Others::misfit, kConvincing);
    excluded(&Others::differ, 0);
    excluded(&Others::unpaired, 0);
  }
  shifts.exclude_worse(possible);
  const Shift best = shifts.most_plausible(possible);
  for (const Shift& other : possible) {
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
