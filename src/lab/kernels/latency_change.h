// By how much one run of a kernel is slower than another, and how certain that is, from the samples of their processes.
// What is repeated is the process: samples of one share its memory layout and its luck, so that their number proves
// little. docs/bench_regressions.md has the formulas and what they were tried on. Knows numbers only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/comparison.h"

namespace weir::bench {

// Samples of one run, process by process. Only ratios matter, so any unit will do.
struct RunTimes {
  std::vector<std::vector<double>> rounds;
  std::vector<std::vector<double>> yardstick;  // a fixed calculation timed between the samples; empty: none
};

// Processes are supposed to differ by this much (a standard deviation of logarithms) where rounds differ by less: three
// that happen to agree do not prove that the next one will. It counts like kSupposedDegrees more rounds.
inline constexpr double kSupposedLuck = 0.03;
inline constexpr double kSupposedDegrees = 4;
// The same where neither side has two processes: nothing at all was seen of what they differ by.
inline constexpr double kUnseenLuck = 0.10;

struct LatencyChange {
  double log_ratio = 0;  // after / before: the median of all ratios between a round of each side (Hodges and Lehmann)
  double log_means = 0;  // the same of the means, which bad luck of one process does move
  double error = 0;      // standard error of the means
  double degrees = 0;    // of freedom that the error rests on
  double luck = 0;       // by how much processes differ, as a standard deviation of logarithms; supposed part included
  std::optional<double> seen_luck;    // from rounds alone; nothing where no side has two
  std::optional<double> log_machine;  // of the yardstick, after / before; nothing where a side has none

  // P(as large or larger | no change), one side. Of the smaller of both ratios: where they disagree, nothing is
  // certain.
  double p_slower() const;
  double p_faster() const;
  // From the smaller to the larger of both ratios, and beyond them as far as chance goes: each bound holds with
  // `certainty`.
  Interval ratio_interval(double certainty) const;
};

// The time of a round: the lower quartile of its samples. Noise on a CPU only ever adds; a quartile, unlike a minimum,
// does not depend on how many samples there are.
double round_time(const std::vector<double>& samples);

// Nothing where a side has no samples. Samples must be positive and finite.
std::optional<LatencyChange> latency_change(const RunTimes& before, const RunTimes& after);

struct LatencyJudgement {
  Verdict verdict = Verdict::ambiguous;
  std::string reason;  // in words, percentages in it; never empty
};
// `p_share`: what p-values are multiplied by because others are judged with this one (Holm).
LatencyJudgement judge_latency(const LatencyChange& change, double threshold, double certainty, double p_share);

}  // namespace weir::bench
