// Decides whether one set of samples is slower than another: the change, its interval, p, a verdict and the reason. All
// of Weir's comparisons are judged here, by one rule and with one set of words. Knows only numbers; prints nothing.
// docs/statistics.md has the formulas.
//
// What is repeated decides what a comparison proves. Samples of one process follow each other in time
// (measure_samples) and know nothing of the next process, which may be 12 to 48 % slower with the same code where the
// host is the limit. Values of several processes are independent (measure_processes); measure_sides chooses.
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
  double significance = 0.01;  // for the p-values after Holm's correction: how often identical code may be accused
  BootstrapOptions bootstrap;  // its seed is used for every change, so none depends on its neighbours
};

// How processes that run identical code differ: the standard deviation of the logarithms of their medians.
struct Spread {
  double deviation = 0;
  double degrees = 0;  // of freedom: one less than the processes that it was measured with
  std::string source;  // for people: "weir calibrate, 2026-11-18, hetero_kernels, 10 processes"
};

struct Change {
  bool is_less_better = true;  // for times; false for rates
  Verdict verdict = Verdict::ambiguous;
  std::string reason;  // why it is ambiguous or not comparable
  std::size_t baseline_count = 0, test_count = 0;
  std::optional<double> baseline_median, test_median;
  std::optional<double> ratio;              // test / baseline
  std::optional<Interval> interval;         // of that ratio
  std::optional<double> p;                  // empty if there is nothing to test
  std::optional<double> rank_p;             // exact p of processes' ranks, which no shape of their scatter can mislead
  std::optional<double> beyond_p;           // one-sided, of a change that does not exceed the threshold
  std::optional<double> adjusted_p;         // after Holm over all changes judged together, and never below rank_p
  std::optional<double> adjusted_beyond_p;  // the same; only where several changes are judged together
  std::optional<double> tail_ratio;         // of the slow ends (p99 of times, p1 of rates); reported, never judged
  std::optional<double> noise;              // the factor by which sides of identical processes differ, at 95 %
  std::size_t baseline_processes = 1, test_processes = 1;

  // The ratio as time: above 1 is slower, for any unit.
  std::optional<double> slowness() const;
};

// Samples of one process, in order of time.
using ProcessSamples = std::span<const double>;

// The samples of each process that has any: `sizes` says how many each has, one after the other; what they leave over
// is one process more.
std::vector<ProcessSamples> by_process(std::span<const double> samples, std::span<const std::size_t> sizes);

// For samples of one process per side: the ratio of medians, its bootstrap interval and Mann-Whitney's p, both widened
// if neighbours are correlated. Says nothing about other processes. Fills in everything except adjusted p and verdict.
void measure_samples(ProcessSamples baseline, ProcessSamples test, const CompareOptions& options, Change& change);
// For one positive value per process: the median of all ratios (Hodges and Lehmann), with Student's interval and p from
// the scatter between processes, and an exact p of ranks. A known spread is pooled with the scatter where the processes
// alone cannot show anything. Fills in everything except adjusted p and verdict.
void measure_processes(std::span<const double> baseline, std::span<const double> test, const CompareOptions& options,
                       Change& change, const std::optional<Spread>& known = {});
// For processes with their samples: by processes if both sides have several, or if their spread is known. Otherwise
// there is a ratio and a reason, but no interval and no p: one process on a side says nothing about the next.
void measure_sides(std::span<const ProcessSamples> baseline, std::span<const ProcessSamples> test,
                   const std::optional<Spread>& known, const CompareOptions& options, Change& change);

// The rule: slower or faster if the change is significant, its interval lies on one side of 1 and it exceeds the
// threshold, which must be shown too (adjusted_beyond_p) if it is one of several; the same if its interval lies within
// the threshold; otherwise ambiguous. Needs ratio, interval, adjusted_p.
Verdict verdict_of(const Change& change, const CompareOptions& options);
// Applies Holm's correction over all changes that have a p, and sets their verdicts. Returns their number.
std::size_t decide(std::span<Change* const> changes, const CompareOptions& options);
// Holm's correction of p and beyond_p; returns the changes that have a p.
std::vector<Change*> adjust(std::span<Change* const> changes);

// Hodges and Lehmann: the median of all differences between a value of each side, which one unlucky process on a side
// does not move. Beyond a million pairs, the difference of medians.
double typical_difference(std::span<const double> before, std::span<const double> after);
// The smallest rank_p that this many processes can give.
double smallest_p(std::size_t before, std::size_t after);
// The fewest processes on each side whose ranks can show a change.
std::size_t fewest_processes(double significance);

}  // namespace weir
