// Conclusions from observations: latencies per mechanism and victim relative to the intruder alone, the victim's loss,
// and sentences that are true. Knows no device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/preempt/experiment.h"
#include "lab/preempt/fit.h"
#include "measure/bootstrap.h"

namespace weir::preempt {

// The quantiles of one latency, in ns. A quantile is empty if fewer than one request is expected beyond it.
struct Quantiles {
  std::size_t count = 0;
  std::optional<double> mean_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
  // 95 %, widened if consecutive waits are correlated; that of p90 from 100 requests on.
  std::optional<Interval> p50_interval_ns, p90_interval_ns, p99_interval_ns;
};
Quantiles quantiles_of(std::span<const double> latencies_ns, std::uint64_t seed);
// The fewest requests for a quantile: p90 10, p99 100, p99.9 1,000.
constexpr std::size_t min_requests(double level) { return static_cast<std::size_t>(1.000001 / (1 - level)); }

// The quantile that sentences and ratios use as the tail: p99 from 400 requests on (it rests on four of them), p90 from
// 100 on, else the median.
constexpr double tail_level(std::size_t count) { return count >= 400 ? 0.99 : count >= 100 ? 0.9 : 0.5; }
std::optional<double> quantile_at(const Quantiles& quantiles, double level);  // 0.5, 0.9 or 0.99
std::optional<Interval> interval_at(const Quantiles& quantiles, double level);

struct Point {
  Victim victim;
  int requests = 0;                                // as requested
  std::int64_t interval_ns = 0;                    // between them on average
  Observation observation;                         // with all its samples
  Quantiles late;                                  // the host's delay: from the due time until it was submitted
  Quantiles to_start, to_end;                      // from the due time
  double tail = 0.5;                               // tail_level() of its requests
  std::optional<double> against_alone;             // the tail to end relative to that of the intruder alone
  std::optional<Interval> against_alone_interval;  // over the spread of alone
  std::optional<double> victim_loss;               // share of its throughput without an intruder; below 0: noise
  bool is_overloaded = false;  // requests arrived faster than they were served: latency grew until the end
  std::string failure;         // why there is no observation
};
// `plan` is the plan of this observation.
Point point_of(const Victim& victim, Observation observation, const ExperimentPlan& plan);

struct Curve {
  const Mechanism* mechanism = nullptr;
  Capability offered;
  std::vector<Point> points;  // by victim
  std::optional<Fit> fit;     // of latency over block time; nothing if too few lengths were observed
  Follows follows = Follows::unknown;
  std::string verdict;  // one sentence
};

// An undisturbed victim.
struct Undisturbed {
  Victim victim;
  Observation observation;
  std::string failure;
};

struct Alone {
  std::vector<Observation> repeats;
  std::vector<double> medians_ns;  // to end, by repeat
  Quantiles to_start, to_end;      // of all repeats
  std::optional<double> drift;     // the largest difference between the medians of repeats, relative to the smallest
  bool has_drifted = false;        // by more than its own noise and 20 %: numbers relative to it are doubtful
};
Alone alone_of(std::vector<Observation> repeats, std::uint64_t seed);
// How far a quantile to end differs from repeat to repeat; of one repeat its bootstrap interval.
std::optional<Interval> spread_of(const Alone& alone, double level);

struct Findings {
  ExperimentPlan plan;
  bool is_complete = true;  // false: ended early, with partial results
  Alone alone;
  std::vector<Undisturbed> undisturbed;  // a victim may appear more than once
  std::vector<Curve> curves;
  std::string verdict;                // the overall verdict: what to use here
  std::vector<std::string> failures;  // lost or repeated work, failed observations: reported first
  std::vector<std::string> warnings;
};

// Curves come with mechanism, offer and points; fills in the rest of them, and everything above.
Findings conclude(const ExperimentPlan& plan, Alone alone, std::vector<Undisturbed> undisturbed,
                  std::vector<Curve> curves);

// The description of a victim: "4 waves of 100 us", "persistent, 1 ms", "memory, 4 waves of 100 us".
std::string words_for(const Victim& victim);
bool is_same(const Victim& a, const Victim& b);

}  // namespace weir::preempt
