// Estimates by how much one run of a kernel is slower than another, and how certain that is, from the samples of their
// processes. The process is the unit of repetition: its samples share memory layout and luck, so their number proves
// little. docs/bench_regressions.md has the formulas and their validation. Knows numbers only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/comparison.h"

namespace weir::bench {

// The samples of one run, process by process. Only ratios matter, so any unit will do.
struct RunTimes {
  std::vector<std::vector<double>> rounds;
  std::vector<std::vector<double>> yardstick;  // a fixed calculation timed between the samples; empty: none
};

// The assumed spread of processes (a standard deviation of logarithms) where rounds differ by less: three that happen
// to agree do not prove that the next one will. It counts like kAssumedDegrees more rounds.
inline constexpr double kAssumedSpread = 0.03;
inline constexpr double kAssumedDegrees = 4;
// The same if neither side has two processes, so that their spread is unknown.
inline constexpr double kUnknownSpread = 0.10;

struct LatencyChange {
  double log_ratio = 0;  // after / before: the median ratio over all pairs of rounds of both sides (Hodges and Lehmann)
  double log_means = 0;  // the same ratio of the means, which one unlucky process does affect
  double error = 0;      // standard error of the means
  double degrees = 0;    // degrees of freedom of the error
  double spread = 0;     // spread of processes, as a standard deviation of logarithms; includes the assumed part
  std::optional<double> seen_spread;  // from rounds alone; nothing if no side has two
  std::optional<double> log_machine;  // of the yardstick, after / before; nothing if a side has none

  // P(as large or larger | no change), one-sided, of the smaller of both ratios: if they disagree, nothing is certain.
  double p_slower() const;
  double p_faster() const;
  // From the smaller to the larger of both ratios, extended on both sides by chance: each bound holds with `certainty`.
  Interval ratio_interval(double certainty) const;
};

// The time of a round: the lower quartile of its samples. Noise on a CPU only adds time; unlike a minimum, a quartile
// does not depend on the number of samples.
double round_time(const std::vector<double>& samples);

// Returns nothing if a side has no samples. Samples must be positive and finite.
std::optional<LatencyChange> latency_change(const RunTimes& before, const RunTimes& after);

struct LatencyJudgement {
  Verdict verdict = Verdict::ambiguous;
  std::string reason;  // a sentence with percentages; never empty
};
// `p_share`: the factor for p-values because several cases are judged together (Holm).
LatencyJudgement judge_latency(const LatencyChange& change, double threshold, double certainty, double p_share);

}  // namespace weir::bench
