#include "trace/sequence_shifts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "measure/statistics.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr std::size_t kMinPairs = 3;
constexpr std::size_t kMinForTrend = 10;
constexpr std::int64_t kMaxShift = 2000;  // collectives that a trace may lack at its start
constexpr std::size_t kRun = 64;          // neighbours that are examined together
constexpr std::size_t kQuick = 32;        // pairs for a first glance at a shift
constexpr std::size_t kMaxSampled = 512;  // pairs of the longest sequence that are examined to judge a shift
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

}  // namespace

std::uint64_t mark_of(const Timeline& timeline, const CollectiveFacts& facts, std::size_t mark) {
  if (mark == kSequenceNumber) return facts.sequence;
  if (mark == kSize) return facts.bytes;
  const std::uint32_t name = timeline.spans[facts.span].name;
  return name == kNoName ? 0 : std::uint64_t{name} + 1;
}

EndSequence::EndSequence(const Timeline& timeline, std::vector<CollectiveFacts> all) : facts(std::move(all)) {
  const auto end_of = [&](const CollectiveFacts& one) { return timeline.spans[one.span].ended_ns; };
  std::stable_sort(facts.begin(), facts.end(),
                   [&](const CollectiveFacts& a, const CollectiveFacts& b) { return end_of(a) < end_of(b); });
  for (const CollectiveFacts& one : facts) ends.push_back(end_of(one));
}

bool SequenceShift::differs(std::size_t mark) const noexcept {
  return static_cast<double>(differ[mark]) > kMayDiffer * static_cast<double>(known[mark]);
}

SequenceShifts::SequenceShifts(const Timeline& timeline, EndSequence ours, EndSequence theirs)
    : timeline_(timeline), ours_(std::move(ours)), theirs_(std::move(theirs)) {}

std::vector<SequenceShift> SequenceShifts::possible() {
  std::vector<SequenceShift> all = candidates();
  for (std::size_t mark = 0; mark < kMarks; ++mark) exclude_by(mark, all);
  if (all.empty()) return all;
  step_ns_ = resolution();
  double steadiest = INFINITY;
  for (const SequenceShift& shift : all)
    if (shift.last - shift.first >= kMinPairs) steadiest = std::min(steadiest, shift.step_ns);
  if (std::isfinite(steadiest)) step_ns_ = std::max(step_ns_, steadiest);
  for (SequenceShift& shift : all) {
    const bool may_be_best = shift.last - shift.first >= kMinPairs && shift.step_ns <= kHopeless * step_ns_;
    shift.cost = may_be_best ? mean_cost(shift) : INFINITY;
  }
  // Marks come between: where noise alone decides, the right shift is not always the steadiest.
  exclude_worse(all, kBeyondNoise);
  for (std::size_t mark = 0; mark < kMarks; ++mark) keep_by(mark, all);
  return all;
}

void SequenceShifts::exclude_worse(std::vector<SequenceShift>& shifts, double times) const {
  const SequenceShift best =
      *std::min_element(shifts.begin(), shifts.end(), [](const SequenceShift& a, const SequenceShift& b) {
        return std::pair(a.cost, std::abs(a.by)) < std::pair(b.cost, std::abs(b.by));
      });
  std::erase_if(shifts,
                [&](const SequenceShift& shift) { return shift.by != best.by && is_worse(shift, best, times); });
}

const SequenceShift& SequenceShifts::most_plausible(const std::vector<SequenceShift>& shifts) const {
  const double agree = kAgree * usual_distance();
  const auto key = [&](const SequenceShift& shift) {
    const double apart = std::fabs(static_cast<double>(shift.distance_ns));
    return std::pair(apart <= agree ? 0 : 1, std::abs(shift.by));
  };
  return *std::min_element(shifts.begin(), shifts.end(),
                           [&](const SequenceShift& a, const SequenceShift& b) { return key(a) < key(b); });
}

std::int64_t SequenceShifts::distance_at(const SequenceShift& shift, std::int64_t ns, bool is_ours) const {
  const std::vector<std::int64_t>& ends = is_ours ? ours_.ends : theirs_.ends;
  const std::int64_t by = is_ours ? shift.by : 0;
  const auto first = ends.begin() + static_cast<std::ptrdiff_t>(shift.first) + by;
  const auto last = ends.begin() + static_cast<std::ptrdiff_t>(shift.last) + by;
  const auto after = std::lower_bound(first, last, ns);
  const std::size_t i = shift.first + static_cast<std::size_t>((after == last ? after - 1 : after) - first);
  return distance(shift, i);
}
TimeInterval SequenceShifts::range(const SequenceShift& shift, bool is_ours) const {
  const std::vector<std::int64_t>& ends = is_ours ? ours_.ends : theirs_.ends;
  const std::size_t by = is_ours ? static_cast<std::size_t>(shift.by) : 0;  // wraps, as the sum does
  return {ends[shift.first + by], ends[shift.last - 1 + by]};
}
std::int64_t SequenceShifts::distance(const SequenceShift& shift, std::size_t i) const {
  return minus(theirs_.ends[i], ours_.ends[i + static_cast<std::size_t>(shift.by)]);
}

// Positions of theirs that are examined: all, or runs of neighbours, so that patterns are not aliased.
template <class Visit>
void SequenceShifts::sample(std::size_t first, std::size_t last, Visit visit) const {
  const std::size_t n = theirs_.size();
  const std::size_t stride = n <= kMaxSampled ? kRun : kRun * ((n + kMaxSampled - 1) / kMaxSampled);
  for (std::size_t run = 0; run < n; run += stride) {
    const std::size_t to = std::min({n, run + kRun, last});
    for (std::size_t i = std::max(run, first); i < to; ++i) visit(i, i > first && (i > run || stride == kRun));
  }
}

std::vector<SequenceShift> SequenceShifts::candidates() {
  std::vector<SequenceShift> found;
  double steadiest = INFINITY;
  const auto n = static_cast<std::int64_t>(ours_.size()), m = static_cast<std::int64_t>(theirs_.size());
  const std::size_t shorter = std::min(ours_.size(), theirs_.size());
  const std::int64_t most = std::min(std::max(n, m), kMaxShift);
  const bool has_numbers = ours_.facts[0].sequence != 0 && theirs_.facts[0].sequence != 0;
  for (std::int64_t by = -most; by <= most; ++by) {
    SequenceShift shift;
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
    shift.step_ns = quick_step(shift);
    steadiest = std::min(steadiest, shift.step_ns);
    found.push_back(shift);
  }
  // Long traces have thousands of shifts; most are hopeless at a glance.
  const double hopeless = kHopeless * std::max(steadiest, resolution());
  std::erase_if(found, [&](const SequenceShift& shift) { return shift.step_ns > hopeless; });
  for (SequenceShift& shift : found) examine(shift);
  std::erase_if(found, [&](const SequenceShift& shift) {
    const bool is_half = (shift.last - shift.first) * 2 >= shorter;
    return !is_half && (shift.known[kSequenceNumber] == 0 || shift.differ[kSequenceNumber] != 0);
  });
  return found;
}

// The median step of a few pairs in the middle; 0 where there are few at all.
double SequenceShifts::quick_step(const SequenceShift& shift) {
  if (shift.last - shift.first < 4 * kQuick) return 0;
  steps_.clear();
  const std::size_t first = (shift.first + shift.last - kQuick) / 2;
  for (std::size_t i = first; i < first + kQuick; ++i) steps_.push_back(std::fabs(step(shift, i)));
  return median(steps_);
}

void SequenceShifts::examine(SequenceShift& shift) {
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
  if (!distances_.empty()) {
    const double away = std::clamp(median(distances_), -9.2e18, 9.2e18);  // what llround may return
    shift.distance_ns = minus(base, minus(0, std::llround(away)));
  }
  if (steps_.size() >= kMinForTrend) shift.trend_ns = median(steps_);
  for (double& step : steps_) step = std::fabs(step - shift.trend_ns);
  // Of normal values both are the median; times of coarse resolution have a median of 0.
  if (!steps_.empty()) shift.step_ns = std::max(median(steps_), quantile(steps_, 0.75) / 1.7);
}

// A mark that no shift explains (sizes of uneven exchanges, names of different versions) excludes none.
void SequenceShifts::exclude_by(std::size_t mark, std::vector<SequenceShift>& shifts) {
  const auto differs = [&](const SequenceShift& shift) { return shift.differs(mark); };
  if (std::all_of(shifts.begin(), shifts.end(), differs)) return;
  std::erase_if(shifts, differs);
}

// Collectives of different sizes are never the same one. Leaves the shifts with the fewest pairs that differ, and of
// those the ones that the most unique values vote for.
void SequenceShifts::keep_by(std::size_t mark, std::vector<SequenceShift>& shifts) const {
  std::size_t least = SIZE_MAX;
  for (const SequenceShift& shift : shifts)
    if (!shift.differs(mark)) least = std::min(least, shift.differ[mark]);
  if (least == SIZE_MAX) return;  // no shift explains this mark, so equal values are chance
  std::erase_if(shifts, [&](const SequenceShift& shift) { return shift.differ[mark] > least; });
  const std::map<std::int64_t, std::size_t> found = votes(mark);
  const auto votes_of = [&](const SequenceShift& shift) {
    const auto at = found.find(shift.by);
    return at == found.end() ? 0 : at->second;
  };
  std::size_t most = 0;
  for (const SequenceShift& shift : shifts) most = std::max(most, votes_of(shift));
  std::erase_if(shifts, [&](const SequenceShift& shift) { return votes_of(shift) < most; });
}

// How often a shift pairs values that each of the two sequences has once.
std::map<std::int64_t, std::size_t> SequenceShifts::votes(std::size_t mark) const {
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
// Change of the distance from the pair before, beyond that of a drifting clock; at a wrong shift, two different gaps
// are compared.
double SequenceShifts::step(const SequenceShift& shift, std::size_t i) const {
  return static_cast<double>(minus(distance(shift, i), distance(shift, i - 1))) - shift.trend_ns;
}
double SequenceShifts::cost(const SequenceShift& shift, std::size_t i) const {
  const double x = step(shift, i) / step_ns_;
  return std::log1p(x * x);
}
double SequenceShifts::outlier_cost(const SequenceShift& shift, std::size_t i) const {
  return 2 * std::max(0.0, std::log(std::fabs(step(shift, i)) / (kOutlier * step_ns_)));
}

double SequenceShifts::mean_cost(const SequenceShift& shift) const {
  double sum = 0, count = 0;
  sample(shift.first, shift.last, [&](std::size_t i, bool has_step) {
    if (!has_step) return;
    sum += cost(shift, i);
    ++count;
  });
  return count > 0 ? sum / count : INFINITY;
}

bool SequenceShifts::is_worse(const SequenceShift& shift, const SequenceShift& best, double times) const {
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
double SequenceShifts::resolution() const {
  const auto is_whole = [](std::int64_t ns) { return ns % 1000 == 0; };
  const bool are_whole = std::all_of(ours_.ends.begin(), ours_.ends.end(), is_whole) &&
                         std::all_of(theirs_.ends.begin(), theirs_.ends.end(), is_whole);
  return are_whole ? 1000 : 1;
}

double SequenceShifts::usual_distance() const {
  std::vector<double> apart;
  for (std::size_t i = 1; i < std::min(ours_.size(), kMaxSampled); ++i)
    apart.push_back(static_cast<double>(minus(ours_.ends[i], ours_.ends[i - 1])));
  return apart.empty() ? 0 : median(apart);
}

double SequenceShifts::tolerated_ns() const noexcept { return kOutlier * kOutlier * step_ns_; }

double SequenceShifts::misfit(double off_ns) const noexcept {
  return 2 * std::max(0.0, std::log(off_ns / tolerated_ns()));
}

double SequenceShifts::explained_misfit(std::size_t count) noexcept {
  return kConvincing + kOutlierNoise * std::sqrt(static_cast<double>(count));
}

}  // namespace weir
