// Fits a line to latencies over block times, and interprets it. Knows numbers only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "measure/bootstrap.h"

namespace weir::preempt {

struct Length {
  double block_ns = 0;
  double latency_ns = 0;
};

// latency = constant + per_block * block time, by least squares of logarithms: each decade has equal weight.
struct Fit {
  double constant_ns = 0;
  double per_block = 0;
  Interval per_block_interval;  // 95 %, from the points' distances to the line
  double shortest_ns = 0, longest_ns = 0;
  std::size_t lengths = 0;
  int waves = 0;            // of the victims; 0: they have no end
  double level = 0.99;      // the quantile of latency
  bool is_to_start = true;  // false: to end
};
// Nothing for fewer than three lengths, or if one is not above 0.
std::optional<Fit> fit_latency(std::span<const Length> lengths);

// What a latency grows with; `unknown` if the line's slope may be 0.
enum class Follows : std::uint8_t { unknown, constant, block, blocks, kernels };
std::string_view name_of(Follows follows);
// The longest wait per block: waits that are uniform up to it have half of it as their median.
inline double reach_of(const Fit& fit) { return fit.per_block * (fit.level == 0.5 ? 2 : 1); }
inline double value_at(const Fit& fit, double block_ns) { return fit.constant_ns + fit.per_block * block_ns; }
// `growth`: the exponent with which latency grows with the number of waves, if that was observed.
Follows what_follows(const Fit& fit, std::optional<double> growth);

}  // namespace weir::preempt
