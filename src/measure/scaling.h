// How throughput depends on the stream count over a sweep. Knows pairs (streams, throughput); runs nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/cost.h"

namespace weir {

// Nothing for any name except the three.
std::optional<Scaling> scaling_named(std::string_view name);

struct ScalingPoint {
  int streams = 0;
  double throughput = 0;
};

struct ScalingRow {
  int streams = 0;
  double throughput = 0;
  double per_stream = 0;
  double speedup = 0;     // X(N) / X(N0)
  double efficiency = 0;  // speedup / (N / N0)
  // Throughput per stream added since the previous row, relative to X(N0) / N0. Nothing in the first row.
  std::optional<double> marginal;
};

// X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)), alpha and beta not negative.
struct UslFit {
  double gamma = 0;                    // throughput of one stream
  double alpha = 0;                    // contention: the share that cannot overlap
  double beta = 0;                     // coherency: the cost that streams cause each other; 0 means no peak
  std::optional<double> r_squared;     // nothing if all throughputs are equal
  std::optional<double> peak_streams;  // nothing if beta is 0: throughput never falls
  std::optional<double> peak_throughput;
  bool is_peak_measured = false;  // the peak lies within the stream counts of the sweep; otherwise it is extrapolated
};

struct ScalingAnalysis {
  Scaling scaling = Scaling::grows;
  std::string meaning;           // what efficiency means under this rule, in one sentence
  std::vector<ScalingRow> rows;  // ascending by streams
  int best_streams = 0;
  std::optional<int> knee;  // smallest count that reaches kKneeLevel of the best throughput
  std::string knee_reason;  // why there is none
  std::optional<UslFit> usl;
  std::string usl_reason;  // why there is none
};

inline constexpr double kKneeLevel = 0.95;
// Three parameters fit any three points exactly, so R^2 would always be 1.
inline constexpr std::size_t kMinForUsl = 4;

// Points may come in any order; several for one stream count are averaged, and unusable ones (streams < 1, throughput
// not positive) are ignored.
ScalingAnalysis analyse_scaling(Scaling scaling, std::span<const ScalingPoint> points);

// Nothing for fewer than kMinForUsl different stream counts.
std::optional<UslFit> fit_usl(std::span<const ScalingPoint> points);

}  // namespace weir
