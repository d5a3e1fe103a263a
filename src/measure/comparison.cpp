#include "measure/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "measure/modes.h"
#include "measure/statistics.h"
#include "measure/student.h"

namespace weir {
namespace {

// Dependent samples count for less; with fewer independent ones than this there is no result.
constexpr double kMinIndependent = 5;
constexpr double kManyDegrees = 1e6;          // Student's distribution is normal then
constexpr std::size_t kMaxExact = 40;         // processes in all; an exact p takes a millisecond
constexpr std::size_t kMaxProcesses = 1'000;  // where fewest_processes() gives up
constexpr std::size_t kMaxDifferences = 1'000'000;

std::vector<double> logarithms(std::span<const double> values) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(value));
  return logs;
}

double squares_about_mean(std::span<const double> values) {
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return squares;
}

std::vector<double> all_samples(std::span<const ProcessSamples> processes) {
  std::vector<double> all;
  for (const ProcessSamples& process : processes) all.insert(all.end(), process.begin(), process.end());
  return all;
}

// One value per process that has samples. The median: of the quantiles that were tried on real processes none agrees
// better between them, and it is what is reported.
std::vector<double> levels_of(std::span<const ProcessSamples> processes) {
  std::vector<double> levels;
  for (const ProcessSamples& process : processes)
    if (!process.empty()) levels.push_back(median(process));
  return levels;
}

// Of the logarithm of a median, as far as samples of its own process tell.
double variance_within(ProcessSamples samples, const CompareOptions& options) {
  const auto interval =
      bootstrap_interval(samples, [](ProcessSamples drawn) { return median(drawn); }, options.bootstrap);
  if (!interval || !(interval->low > 0)) return 0;
  const double deviation = std::log(interval->high / interval->low) /
                           (2 * student_limit((1 - options.bootstrap.confidence) / 2, kManyDegrees));
  return deviation * deviation;
}

std::optional<double> tail_ratio(ProcessSamples baseline, ProcessSamples test, bool is_less_better) {
  const double slow_end = is_less_better ? 0.99 : 0.01, before = quantile(baseline, slow_end);
  if (!(before > 0)) return std::nullopt;
  return quantile(test, slow_end) / before;
}

// Two-sided p of the sum of ranks, over all ways of dealing these values to two sides of these sizes. Equal values
// share their rank, as processes in virtual time do; the approximation for ties is too small with so few of them.
double exact_rank_p(std::span<const double> baseline, std::span<const double> test) {
  const std::size_t count = baseline.size() + test.size();
  if (count > kMaxExact) return mann_whitney(test, baseline).p;
  std::vector<double> all(baseline.begin(), baseline.end());
  all.insert(all.end(), test.begin(), test.end());
  const auto doubled_rank = [&](double value) {
    const auto below = std::count_if(all.begin(), all.end(), [&](double other) { return other < value; });
    return static_cast<std::size_t>(2 * below + std::count(all.begin(), all.end(), value) + 1);
  };
  // ways[k][sum]: how many choices of k values have this sum of doubled ranks.
  std::vector<std::vector<double>> ways(test.size() + 1, std::vector<double>(count * (count + 1) + 1, 0.0));
  ways[0][0] = 1;
  std::size_t seen = 0;
  for (const double value : all) {
    const std::size_t rank = doubled_rank(value);
    for (std::size_t chosen = std::min(++seen, test.size()); chosen > 0; --chosen)
      for (std::size_t sum = rank; sum < ways[chosen].size(); ++sum) ways[chosen][sum] += ways[chosen - 1][sum - rank];
  }
  std::size_t observed = 0;
  for (const double value : test) observed += doubled_rank(value);
  const auto distance = [&](std::size_t sum) {
    return std::fabs(static_cast<double>(sum) - static_cast<double>(test.size() * (count + 1)));
  };
  double extreme = 0, total = 0;
  for (std::size_t sum = 0; sum < ways.back().size(); ++sum) {
    total += ways.back()[sum];
    if (distance(sum) >= distance(observed)) extreme += ways.back()[sum];
  }
  return extreme / total;
}

// Counts and medians; false, with the reason, if there is no ratio.
bool has_ratio(std::span<const double> baseline, std::span<const double> test, Change& change) {
  change.baseline_count = baseline.size();
  change.test_count = test.size();
  if (!baseline.empty()) change.baseline_median = median(baseline);
  if (!test.empty()) change.test_median = median(test);
  if (baseline.empty() || test.empty())
    change.reason = fmt::format("the {} has no samples", baseline.empty() ? "baseline" : "test");
  else if (*change.baseline_median <= 0 || *change.test_median <= 0)
    change.reason = "a median of 0 has no ratio";
  else
    return true;
  change.verdict = Verdict::not_comparable;
  return false;
}

// The interval of the change, in terms of time.
Interval slowness_range(const Change& change) {
  return change.is_less_better ? *change.interval : Interval{1 / change.interval->high, 1 / change.interval->low};
}

std::string doubt(const Change& change, const CompareOptions& options) {
  const Interval range = slowness_range(change);
  const bool is_shown = *change.adjusted_p < options.significance && (range.low > 1 || range.high < 1);
  if (is_shown && change.adjusted_beyond_p)
    return "a difference is there, but among so many entries it is not shown to exceed the threshold";
  if (is_shown) return "a difference is there, but it may lie on either side of the threshold";
  if (!change.noise)
    return "too noisy to tell a change beyond the threshold from none; more iterations narrow the interval";
  const bool is_large = std::fabs(std::log(*change.ratio)) > std::log1p(options.threshold);
  const std::size_t needed = fewest_processes(options.significance);
  if (change.rank_p && is_large && smallest_p(change.baseline_processes, change.test_processes) >= options.significance)
    return fmt::format("{} against {} processes cannot show a change at {:g} %; {} on each side can",
                       change.test_processes, change.baseline_processes, 100 * options.significance, needed);
  const double width = std::log(*change.noise) / std::log1p(options.threshold);
  const std::string more = fmt::format(
      "two sides of identical processes may differ by {:.0f} % here; run more processes", 100 * (*change.noise - 1));
  if (width <= 1) return more;
  // The interval shrinks with the root of their number.
  const double now =
      2 / (1 / static_cast<double>(change.baseline_processes) + 1 / static_cast<double>(change.test_processes));
  return fmt::format("{}: about {:.0f} on each side would narrow that to the threshold", more,
                     std::ceil(std::max(now * width * width, static_cast<double>(needed))));
}

// One-sided p of a change that is not larger than the threshold, from the two-sided p of what remains of it once the
// threshold has been taken off.
double one_sided(double two_sided_p, double remaining) { return remaining > 0 ? two_sided_p / 2 : 1 - two_sided_p / 2; }

// What a side does by itself: with two modes further apart than the threshold its median moves from one to the other
// without any cause, within and between runs.
std::string switching(ProcessSamples baseline, ProcessSamples test, const CompareOptions& options) {
  for (const auto& [name, side, other] : {std::tuple{"baseline", baseline, test}, std::tuple{"test", test, baseline}}) {
    const auto modes = two_modes(side, 1 + options.threshold);
    if (!modes) continue;
    const double margin = std::sqrt(1 + options.threshold), middle = median(other);
    if (middle * margin < modes->low.value || middle > modes->high.value * margin) continue;
    return fmt::format(
        "the {}'s samples gather around two values {:.0f} % apart ({:.0f} and {:.0f} % of them), and the other side "
        "lies "
        "within: run more processes",
        name, 100 * (modes->high.value / modes->low.value - 1), 100 * modes->low.share, 100 * modes->high.share);
  }
  return {};
}

}  // namespace

const char* name_of(Verdict verdict) {
  constexpr std::array kNames{"same", "faster", "slower", "ambiguous", "not_comparable"};
  return kNames[static_cast<std::size_t>(verdict)];
}

int exit_code(const VerdictCounts& counts, bool is_strict) {
  if (counts.contains(Verdict::slower)) return 3;
  const bool is_unclear = counts.contains(Verdict::ambiguous) || counts.contains(Verdict::not_comparable);
  return is_strict && is_unclear ? 4 : 0;
}

std::optional<double> Change::slowness() const { return is_less_better || !ratio ? ratio : 1 / *ratio; }

std::vector<ProcessSamples> by_process(std::span<const double> samples, std::span<const std::size_t> sizes) {
  std::vector<ProcessSamples> processes;
  for (const std::size_t size : sizes) {
    const std::size_t count = std::min(size, samples.size());
    if (count > 0) processes.push_back(samples.first(count));
    samples = samples.subspan(count);
  }
  if (!samples.empty()) processes.push_back(samples);
  return processes;
}

void measure_samples(std::span<const double> baseline, std::span<const double> test, const CompareOptions& options,
                     Change& change) {
  if (!has_ratio(baseline, test, change)) return;
  change.ratio = *change.test_median / *change.baseline_median;
  const std::size_t fewest = std::min(baseline.size(), test.size());
  if (fewest < kMinForInterval) {
    change.reason = fmt::format("only {} sample{} on one side, at least {} are needed", fewest, fewest == 1 ? "" : "s",
                                kMinForInterval);
    return;
  }
  change.tail_ratio = tail_ratio(baseline, test, change.is_less_better);

  const Dependence before = serial_dependence(baseline), after = serial_dependence(test);
  change.interval = median_ratio_interval(test, baseline, options.bootstrap);
  const double independent = std::min(static_cast<double>(baseline.size()) / before.inflation,
                                      static_cast<double>(test.size()) / after.inflation);
  if (!change.interval || independent < kMinIndependent) {
    change.reason = fmt::format(
        "neighbouring samples are so alike that they are worth {:.0f} independent ones; "
        "more iterations are needed",
        std::floor(independent));
    return;
  }
  change.reason = switching(baseline, test, options);  // decide() heeds it
  const double inflation = joint_inflation(after, test.size(), before, baseline.size());
  change.p = mann_whitney(test, baseline, inflation).p;
  const double limit = *change.ratio > 1 ? 1 + options.threshold : 1 / (1 + options.threshold);
  std::vector<double> shifted;
  for (const double sample : baseline) shifted.push_back(limit * sample);
  const bool is_beyond = *change.ratio > 1 ? *change.ratio > limit : *change.ratio < limit;
  change.beyond_p = one_sided(mann_whitney(test, shifted, inflation).p, is_beyond ? 1 : -1);
}

void measure_processes(std::span<const double> baseline, std::span<const double> test, const CompareOptions& options,
                       Change& change, const std::optional<Spread>& known) {
  if (!has_ratio(baseline, test, change)) return;
  for (const auto& side : {baseline, test})
    if (!(*std::min_element(side.begin(), side.end()) > 0)) {
      change.verdict = Verdict::not_comparable;
      change.reason = "a process with a median of 0 has no ratio";
      return;
    }
  const std::size_t before_count = baseline.size(), after_count = test.size();
  change.baseline_processes = before_count;
  change.test_processes = after_count;
  const std::vector<double> before = logarithms(baseline), after = logarithms(test);
  const double difference = typical_difference(before, after);
  change.ratio = std::exp(difference);
  // Ranks need no assumption, so they decide wherever enough processes were run.
  const bool is_known = known && smallest_p(before_count, after_count) >= options.significance;
  double degrees = static_cast<double>(before_count + after_count) - 2;
  double squares = squares_about_mean(before) + squares_about_mean(after);
  if (is_known) {
    degrees += known->degrees;
    squares += known->degrees * known->deviation * known->deviation;
  } else if (std::min(before_count, after_count) < 2) {
    change.reason = "one process on a side says nothing about the next";
    return;
  }
  const double error =
      std::sqrt(squares / degrees * (1 / static_cast<double>(before_count) + 1 / static_cast<double>(after_count)));
  // Processes in virtual time agree exactly; any difference between them is real.
  const auto p_of = [&](double distance) {
    if (error > 0) return std::min(1.0, 2 * student_above(std::fabs(distance) / error, degrees));
    return distance == 0 ? 1.0 : 0.0;
  };
  change.noise = std::exp(student_limit((1 - options.bootstrap.confidence) / 2, degrees) * error);
  change.interval = Interval{*change.ratio / *change.noise, *change.ratio * *change.noise};
  // Student's distribution is that of means. The typical difference is what is reported: one process moves it less.
  const double apart = mean(after) - mean(before);
  change.p = p_of(apart);
  const double remaining = std::fabs(apart) - std::log1p(options.threshold);
  change.beyond_p = one_sided(p_of(remaining), remaining);
  if (!is_known) change.rank_p = exact_rank_p(baseline, test);
}

void measure_sides(std::span<const ProcessSamples> baseline, std::span<const ProcessSamples> test,
                   const std::optional<Spread>& known, const CompareOptions& options, Change& change) {
  const std::vector<double> before = all_samples(baseline), after = all_samples(test);
  const std::vector<double> before_levels = levels_of(baseline), after_levels = levels_of(test);
  const bool are_single = before_levels.size() == 1 && after_levels.size() == 1;
  if (are_single || before_levels.empty() || after_levels.empty()) {
    measure_samples(before, after, options, change);
    if (known && known->deviation == 0) return;
    if (!change.p) return change.interval.reset();
    Change apart;  // what one process cannot know is taken back
    apart.is_less_better = change.is_less_better;
    if (known) apart.reason = change.reason;
    change = apart;
  }
  std::optional<Spread> spread = known;
  if (spread) {
    const auto part = [](std::size_t count) { return 1 / static_cast<double>(count); };
    const double within = (before_levels.size() == 1 ? variance_within(before, options) : 0) +
                          (after_levels.size() == 1 ? variance_within(after, options) : 0);
    spread->deviation = std::sqrt(spread->deviation * spread->deviation +
                                  within / (part(before_levels.size()) + part(after_levels.size())));
  }
  measure_processes(before_levels, after_levels, options, change, spread);
  change.baseline_count = before.size();
  change.test_count = after.size();
  change.tail_ratio = tail_ratio(before, after, change.is_less_better);
}

Verdict verdict_of(const Change& change, const CompareOptions& options) {
  const double slowness = *change.slowness(), most = 1 + options.threshold;
  const Interval range = slowness_range(change);
  const bool is_significant = *change.adjusted_p < options.significance;
  // The lower end of an interval that all entries share lies beyond the threshold.
  const bool is_beyond =
      !change.adjusted_beyond_p || *change.adjusted_beyond_p < (1 - options.bootstrap.confidence) / 2;
  if (is_significant && is_beyond && range.low > 1 && slowness > most) return Verdict::slower;
  if (is_significant && is_beyond && range.high < 1 && slowness < 1 / most) return Verdict::faster;
  return range.low >= 1 / most && range.high <= most ? Verdict::same : Verdict::ambiguous;
}

std::vector<Change*> adjust(std::span<Change* const> changes) {
  std::vector<Change*> tested;
  std::vector<double> p_values, beyond;
  for (Change* const change : changes) {
    if (!change->p) continue;
    tested.push_back(change);
    p_values.push_back(*change->p);
    beyond.push_back(change->beyond_p.value_or(1));
  }
  const std::vector<double> adjusted = holm(p_values), adjusted_beyond = holm(beyond);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    tested[i]->adjusted_p = std::max(adjusted[i], tested[i]->rank_p.value_or(0));
    // One entry was chosen before it was measured: its best estimate counts. Of many, the largest estimate is mostly
    // luck.
    if (tested.size() > 1 && tested[i]->beyond_p) tested[i]->adjusted_beyond_p = adjusted_beyond[i];
  }
  return tested;
}

std::size_t decide(std::span<Change* const> changes, const CompareOptions& options) {
  const std::vector<Change*> tested = adjust(changes);
  for (Change* const change : tested) {
    change->verdict = verdict_of(*change, options);
    // A reason that is there already speaks against any difference.
    if (!change->reason.empty() && change->verdict != Verdict::same) change->verdict = Verdict::ambiguous;
    if (change->verdict == Verdict::same) change->reason.clear();
    if (change->verdict == Verdict::ambiguous && change->reason.empty()) change->reason = doubt(*change, options);
  }
  return tested.size();
}

double typical_difference(std::span<const double> before, std::span<const double> after) {
  if (before.size() * after.size() > kMaxDifferences) return median(after) - median(before);
  std::vector<double> all;
  all.reserve(before.size() * after.size());
  for (const double then : before)
    for (const double now : after) all.push_back(now - then);
  return median(all);
}

double smallest_p(std::size_t before, std::size_t after) {
  double ways = 1;
  for (std::size_t i = 1; i <= after; ++i) ways *= static_cast<double>(before + i) / static_cast<double>(i);
  return std::min(1.0, 2 / ways);
}

std::size_t fewest_processes(double significance) {
  std::size_t count = 1;
  while (count < kMaxProcesses && smallest_p(count, count) >= significance) ++count;
  return count;
}

}  // namespace weir
