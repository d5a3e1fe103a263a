// Whether one set of samples is slower than another: the change, its interval, p, a verdict and the reason. Everything
// that Weir compares is judged here, by one rule and in one set of words. Knows numbers only; prints nothing.
// docs/statistics.md has the formulas.
//
// What is repeated decides what a comparison proves. Samples of one process follow each other in time
// (measure_samples); values of several processes, as their medians, are independent (measure_processes).
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

// not_comparable: there is nothing to judge, as where a side has no samples; more of them would not help.
enum class Verdict { same, faster, slower, ambiguous, not_comparable };
inline constexpr Verdict kVerdicts[] = {Verdict::slower, Verdict::faster, Verdict::same, Verdict::ambiguous,
                                        Verdict::not_comparable};  // in the order in which counts are reported
const char* name_of(Verdict verdict);

using VerdictCounts = std::map<Verdict, std::size_t>;
// 3 if anything is slower; else 4 if anything is ambiguous or not comparable and `is_strict`; else 0.
int exit_code(const VerdictCounts& counts, bool is_strict);

struct CompareOptions {
  double threshold = 0.05;     // a smaller change does not matter
  double significance = 0.05;  // for the p-values after Holm's correction
  BootstrapOptions bootstrap;  // its seed is used for every change, so none depends on its neighbours
};

struct Change {
  bool is_less_better = true;  // of times; not of rates
  Verdict verdict = Verdict::ambiguous;
  std::string reason;  // why it is ambiguous or not comparable
  std::size_t baseline_count = 0, test_count = 0;
  std::optional<double> baseline_median, test_median;
  std::optional<double> ratio;       // test / baseline
  std::optional<Interval> interval;  // of that ratio
  std::optional<double> p;           // empty where there is nothing to test
  std::optional<double> adjusted_p;  // after Holm over all changes that are judged together
  std::optional<double> tail_ratio;  // of the slow ends (p99 of times, p1 of rates); reported, never judged
  std::optional<double> noise;       // of processes, see aa_noise()

  // The ratio as time: above 1 is slower, whatever the unit.
  std::optional<double> slowness() const;
};

// Samples of one process a side, in order of time: the ratio of medians, its bootstrap interval and Mann-Whitney's p,
// both widened where neighbours are alike. Fills in everything but `adjusted_p` and the verdict.
void measure_samples(std::span<const double> baseline, std::span<const double> test, const CompareOptions& options,
                     Change& change);
// One positive value per process: the median of all ratios (Hodges and Lehmann), with an interval by the A/A noise, and
// an exact p. Fills in everything but `adjusted_p` and the verdict.
void measure_processes(std::span<const double> baseline, std::span<const double> test, const CompareOptions& options,
                       Change& change);

// The rule: slower or faster where the change is significant, its interval lies on one side of 1 and it exceeds the
// threshold; the same where its interval lies within the threshold; else ambiguous. Needs ratio, interval, adjusted_p.
Verdict verdict_of(const Change& change, const CompareOptions& options);
// Holm's correction over all changes that have a p, and their verdicts. Returns how many these are.
std::size_t decide(std::span<Change* const> changes, const CompareOptions& options);
// Holm's correction of p, into adjusted_p; returns the changes that have one.
std::vector<Change*> adjust(std::span<Change* const> changes);

// Hodges and Lehmann: the median of all differences between a value of each side, which one process with bad luck on a
// side does not move. The difference of medians beyond a million pairs.
double typical_difference(std::span<const double> before, std::span<const double> after);
// By which factor two sides of `before` and `after` processes differ without any cause: each side is split against
// itself in every way (in 200 random ones beyond 12 processes), and 95 % of the splits differ by less, scaled to the
// sizes of whole sides. Nothing where neither side has two processes.
std::optional<double> aa_noise(std::span<const double> before, std::span<const double> after, std::uint64_t seed);
// The smallest p that so many processes can give.
double smallest_p(std::size_t before, std::size_t after);

}  // namespace weir
