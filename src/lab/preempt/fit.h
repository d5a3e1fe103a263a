// A line through latencies over block times, and what such a line says. Knows numbers only.
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

// latency = constant + per_block * block time, by least squares of logarithms: each decade counts alike.
struct Fit {
  double constant_ns = 0;
  double per_block = 0;
  Interval per_block_interval;  // 95 %, from how far the points are off the line
  double shortest_ns = 0, longest_ns = 0;
  std::size_t lengths = 0;
  int waves = 0;            // of the victims that it is about; 0: they have no end
  double level = 0.99;      // the quantile of latency that it is about
  bool is_to_start = true;  // false: to end
};
// Nothing for fewer than three lengths, or where one is not above 0.
std::optional<Fit> fit_latency(std::span<const Length> lengths);

// What a latency grows with; `unknown` where the line's slope may as well be 0.
enum class Follows : std::uint8_t { unknown, constant, block, blocks, kernels };
std::string_view name_of(Follows follows);
// How far a latency reaches per block: waits that are anything up to that have half of it as their median.
inline double reach_of(const Fit& fit) { return fit.per_block * (fit.level == 0.5 ? 2 : 1); }
inline double value_at(const Fit& fit, double block_ns) { return fit.constant_ns + fit.per_block * block_ns; }
// `growth`: exponent by which latency grows with the number of waves, where that was observed.
Follows what_follows(const Fit& fit, std::optional<double> growth);

}  // namespace weir::preempt
