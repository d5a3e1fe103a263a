// What observations say: latencies per mechanism and victim against the intruder alone, what the victim lost, and
// sentences that are true. Knows no device.
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

// Of one latency, in ns. A quantile is empty where fewer than one request is expected beyond it.
struct Quantiles {
  std::size_t count = 0;
  std::optional<double> mean, p50, p90, p99, p999, most;
  std::optional<Interval> p50_interval, p99_interval;  // 95 %, widened where waits follow each other
};
Quantiles quantiles_of(std::span<const double> latencies_ns, std::uint64_t seed);
// Requests from which on a quantile is given: p90 10, p99 100, p99.9 1,000.
constexpr std::size_t fewest_requests(double level) { return static_cast<std::size_t>(1.000001 / (1 - level)); }

struct Point {
  Victim victim;
  int requests = 0;                     // asked for
  std::int64_t interval_ns = 0;         // between them on average
  Observation observation;              // with all its samples
  Quantiles late;                       // how long after it was due the host had submitted it
  Quantiles to_start, to_end;           // from when it was due
  std::optional<double> against_alone;  // p99 to end over that of the intruder alone
  std::optional<double> victim_loss;    // of its throughput without an intruder; below 0: noise
  bool is_overloaded = false;           // requests came faster than they passed: latency grew until the end
  std::string failure;                  // why there is no observation
};
// `plan`: as of this observation.
Point point_of(const Victim& victim, Observation observation, const Plan& plan);

struct Curve {
  const Mechanism* mechanism = nullptr;
  Capability offered;
  std::vector<Point> points;  // by victim
  std::optional<Fit> fit;     // of latency over block time; none where too few lengths were observed
  Follows follows = Follows::unknown;
  std::string verdict;  // one sentence
};

// The victim with nobody in its way.
struct Undisturbed {
  Victim victim;
  Observation observation;
  std::string failure;
};

struct Alone {
  std::vector<Observation> repeats;
  std::vector<double> medians_ns;  // to end, by repeat
  Quantiles to_start, to_end;      // of all repeats
  std::optional<double> drift;     // the largest difference of medians between repeats, relative to the smallest
  bool has_drifted = false;        // more than its own noise and 20 %: numbers against it are doubtful
};
Alone alone_of(std::vector<Observation> repeats, std::uint64_t seed);

struct Findings {
  Plan plan;
  bool is_complete = true;  // false: ended early, what was seen so far counts
  Alone alone;
  std::vector<Undisturbed> undisturbed;  // a victim may come more than once
  std::vector<Curve> curves;
  std::string verdict;                // of the whole: what to use here
  std::vector<std::string> failures;  // lost or repeated work, observations that failed: said first
  std::vector<std::string> warnings;
};

// Curves come with mechanism, offer and points; the rest of them, and everything above, follows.
Findings conclude(const Plan& plan, Alone alone, std::vector<Undisturbed> undisturbed, std::vector<Curve> curves);

// How a victim is called: "4 waves of 100 us", "persistent, 1 ms", "memory, 4 waves of 100 us".
std::string words_for(const Victim& victim);
bool is_same(const Victim& a, const Victim& b);

}  // namespace weir::preempt
