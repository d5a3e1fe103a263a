// Decides whether one set of samples is slower than another: the change, its interval, p, a verdict and the reason. All
// of Weir's comparisons are judged here, by one rule and with one set of words. Knows only numbers; prints nothing.
// docs/statistics.md has the formulas.
//
// What is repeated decides what a comparison proves. Samples of one process follow each other in time
// (measure_samples); values of several processes, such as their medians, are independent (measure_processes).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/bootstrap.h"

namespace weir {

// not_comparable: there is nothing to judge, for example if a side has no samples; more samples would not help.
enum class Verdict { same, faster, slower, ambiguous, not_comparable };
inline constexpr Verdict kVerdicts[] = {Verdict::slower, Verdict::faster, Verdict::same, Verdict::ambiguous,
                                        Verdict::not_comparable};  // in the order of reports
const char* name_of(Verdict verdict);

using VerdictCounts = std::map<Verdict, std::size_t>;
// 3 if anything is slower; else 4 if anything is ambiguous or not comparable and `is_strict`; else 0.
int exit_code(const VerdictCounts& counts, bool is_strict);

struct CompareOptions {
  double threshold = 0.05;     // smaller changes do not matter
  double significance = 0.05;  // for the p-values after Holm's correction
  BootstrapOptions bootstrap;  // its seed is used for every change, so none depends on its neighbours
};

struct Change {
  bool is_less_better = true;  // for times; false for rates
  Verdict verdict = Verdict::ambiguous;
  std::string reason;  // why it is ambiguous or not comparable
  std::size_t baseline_count = 0, test_count = 0;
  std::optional<double> baseline_median, test_median;
  std::optional<double> ratio;       // test / baseline
  std::optional<Interval> interval;  // of that ratio
  std::optional<double> p;           // empty if there is nothing to test
  std::optional<double> adjusted_p;  // after Holm over all changes judged together
  std::optional<double> tail_ratio;  // of the slow ends (p99 of times, p1 of rates); reported, never judged
  std::optional<double> noise;       // between processes, see aa_noise()

  // The ratio as time: above 1 is slower, for any unit.
  std::optional<double> slowness() const;
};

// For samples of one process per side, in order of time: the ratio of medians, its bootstrap interval and
// Mann-Whitney's p, both widened if neighbours are correlated. Fills in everything except `adjusted_p` and the verdict.
void measure_samples(std::span<const double> baseline, std::span<const double> test, const CompareOptions& options,
                     Change& change);
// For one positive value per process: the median of all ratios (Hodges and Lehmann), with an interval from the A/A
// noise, and an exact p. Fills in everything except `adjusted_p` and the verdict.
void measure_processes(std::span<const double> baseline, std::span<const double> test, const CompareOptions& options,
                       Change& change);

// The rule: slower or faster if the change is significant, its interval lies on one side of 1 and it exceeds the
// threshold; the same if its interval lies within the threshold; otherwise ambiguous. Needs ratio, interval,
// adjusted_p.
Verdict verdict_of(const Change& change, const CompareOptions& options);
// Applies Holm's correction over all changes that have a p, and sets their verdicts. Returns their number.
std::size_t decide(std::span<Change* const> changes, const CompareOptions& options);
// Holm's correction of p, into adjusted_p; returns the changes that have one.
std::vector<Change*> adjust(std::span<Change* const> changes);

// Hodges and Lehmann: the median of all differences between a value of each side, which one unlucky process on a side
// does not move. Beyond a million pairs, the difference of medians.
double typical_difference(std::span<const double> before, std::span<const double> after);
// The factor by which two sides of `before` and `after` processes differ without any cause: each side is split against
// itself in every way (in 200 random ones beyond 12 processes), and 95 % of the splits differ by less, scaled to the
// sizes of whole sides. Nothing if neither side has two processes.
std::optional<double> aa_noise(std::span<const double> before, std::span<const double> after, std::uint64_t seed);
// The smallest p that this many processes can give.
double smallest_p(std::size_t before, std::size_t after);

}  // namespace weir
