#include "measure/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "measure/statistics.h"

namespace weir {
namespace {

// Dependent samples count for less; with fewer independent ones than this there is no result.
constexpr double kMinIndependent = 5;
constexpr std::size_t kMaxSplits = 200;  // of one side against itself
constexpr std::size_t kMaxToEnumerate = 12;
constexpr double kNoiseLevel = 0.95;
constexpr std::size_t kMaxDifferences = 1'000'000;

std::vector<double> logarithms(std::span<const double> values) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(std::log(value));
  return logs;
}

// |difference| between the halves of a side, for every way to halve it or for many random ones.
void add_splits(const std::vector<double>& side, double scale, SplitMix& random, std::vector<double>& differences) {
  const std::size_t count = side.size(), half = count / 2;
  std::vector<double> first, second;
  const auto add = [&](auto is_first) {
    first.clear();
    second.clear();
    for (std::size_t i = 0; i < count; ++i) (is_first(i) ? first : second).push_back(side[i]);
    differences.push_back(scale * std::fabs(typical_difference(first, second)));
  };
  if (count <= kMaxToEnumerate) {
    for (std::uint32_t mask = 0; mask < (1U << count); ++mask)
      if (static_cast<std::size_t>(std::popcount(mask)) == half)
        add([&](std::size_t i) { return (mask >> i & 1U) != 0; });
    return;
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<bool> is_first(count);
  for (std::size_t split = 0; split < kMaxSplits; ++split) {
    for (std::size_t i = 0; i < half; ++i)
      std::swap(order[i], order[i + random.below(static_cast<std::uint32_t>(count - i))]);
    for (std::size_t i = 0; i < count; ++i) is_first[order[i]] = i < half;
    add([&](std::size_t i) { return is_first[i]; });
  }
}

// Halves have fewer processes than sides, so they differ by more.
double scale_to(std::size_t side, std::size_t before, std::size_t after) {
  const auto part = [](std::size_t count) { return 1.0 / static_cast<double>(count); };
  return std::sqrt((part(before) + part(after)) / (part(side / 2) + part(side - side / 2)));
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

std::string doubt(const Change& change, const CompareOptions& options, std::size_t hypotheses) {
  const Interval range = slowness_range(change);
  const bool is_apart = range.low > 1 || range.high < 1;
  if (change.noise) {
    const double least = smallest_p(change.baseline_count, change.test_count) * static_cast<double>(hypotheses);
    if (least >= options.significance && is_apart && std::fabs(std::log(*change.ratio)) > std::log1p(options.threshold))
      return fmt::format("{} against {} processes cannot prove anything among {} benchmarks; take more",
                         change.test_count, change.baseline_count, hypotheses);
    return fmt::format("identical processes differ by up to {:.0f} % here; run more processes",
                       100 * (*change.noise - 1));
  }
  return *change.adjusted_p < options.significance && is_apart
             ? "a difference is there, but it may lie on either side of the threshold"
             : "too noisy to tell a change beyond the threshold from none; more iterations narrow the interval";
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
  const double slow_end = change.is_less_better ? 0.99 : 0.01;
  const double baseline_tail = quantile(baseline, slow_end);
  if (baseline_tail > 0) change.tail_ratio = quantile(test, slow_end) / baseline_tail;

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
  change.p = mann_whitney(test, baseline, joint_inflation(after, test.size(), before, baseline.size())).p;
}

void measure_processes(std::span<const double> baseline, std::span<const double> test, const CompareOptions& options,
                       Change& change) {
  if (!has_ratio(baseline, test, change)) return;
  change.ratio = std::exp(typical_difference(logarithms(baseline), logarithms(test)));
  if (std::min(baseline.size(), test.size()) < 2) {
    change.reason = "one process on a side says nothing about the next";
    return;
  }
  change.noise = aa_noise(baseline, test, options.bootstrap.seed);
  change.interval = Interval{*change.ratio / *change.noise, *change.ratio * *change.noise};
  // Exact over all assignments of processes to sides, for up to 20 processes.
  change.p = mann_whitney(test, baseline).p;
}

Verdict verdict_of(const Change& change, const CompareOptions& options) {
  const double slowness = *change.slowness(), most = 1 + options.threshold;
  const Interval range = slowness_range(change);
  const bool is_significant = *change.adjusted_p < options.significance;
  if (is_significant && range.low > 1 && slowness > most) return Verdict::slower;
  if (is_significant && range.high < 1 && slowness < 1 / most) return Verdict::faster;
  return range.low >= 1 / most && range.high <= most ? Verdict::same : Verdict::ambiguous;
}

std::vector<Change*> adjust(std::span<Change* const> changes) {
  std::vector<Change*> tested;
  std::vector<double> p_values;
  for (Change* const change : changes) {
    if (!change->p) continue;
    tested.push_back(change);
    p_values.push_back(*change->p);
  }
  const std::vector<double> adjusted = holm(p_values);
  for (std::size_t i = 0; i < tested.size(); ++i) tested[i]->adjusted_p = adjusted[i];
  return tested;
}

std::size_t decide(std::span<Change* const> changes, const CompareOptions& options) {
  const std::vector<Change*> tested = adjust(changes);
  for (Change* const change : tested) {
    change->verdict = verdict_of(*change, options);
    if (change->verdict == Verdict::ambiguous) change->reason = doubt(*change, options, tested.size());
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

std::optional<double> aa_noise(std::span<const double> before, std::span<const double> after, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<double> differences;
  for (const auto& side : {before, after})
    if (side.size() >= 2)
      add_splits(logarithms(side), scale_to(side.size(), before.size(), after.size()), random, differences);
  if (differences.empty()) return std::nullopt;
  return std::exp(quantile(differences, kNoiseLevel));
}

double smallest_p(std::size_t before, std::size_t after) {
  double ways = 1;
  for (std::size_t i = 1; i <= after; ++i) ways *= static_cast<double>(before + i) / static_cast<double>(i);
  return std::min(1.0, 2 / ways);
}

}  // namespace weir
