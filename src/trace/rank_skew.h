// Which ranks keep the others waiting: arrival times at collectives and latencies of ranks. Reads numbers only; the
// caller brings every rank's times onto one clock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// When a rank came to a collective.
struct Arrival {
  std::uint32_t command = 0;
  std::uint32_t iteration = 0;
  std::int64_t started_ns = 0;  // on the clock that all ranks share
};

struct RankSkew {
  std::size_t instances = 0;  // collectives that every rank came to: (command, iteration)
  // Last minus first arrival.
  double p50_ns = 0, p95_ns = 0, p99_ns = 0, max_ns = 0;
  // By rank: the share of instances to which it came last. Those that came last together, as far as the clocks can
  // tell, share the instance.
  std::vector<double> last_share;
  // By rank: median of its arrival minus the median of the others'.
  std::vector<double> behind_ns;
};

// `arrivals` by rank. Nothing for fewer than two ranks, or where no collective has an arrival of every rank.
std::optional<RankSkew> rank_skew(std::span<const std::vector<Arrival>> arrivals, double clock_error_ns);

struct Straggler {
  int rank = 0;
  std::optional<double> last_share;     // where it comes last too often
  std::optional<double> behind_ns;      // with it
  std::optional<double> latency_ratio;  // p50 over the median of all ranks' p50, where that is too much
  std::string reason;                   // in words, with the figures
};

inline constexpr double kStragglerLatency = 1.10;

// A rank that comes last in more than twice its fair share of collectives (75 % where there are two ranks), more often
// than chance would have it, or whose median latency is more than 10 % above the median of the ranks. `latency_p50_ns`
// by rank, empty where there is no latency.
std::vector<Straggler> find_stragglers(const std::optional<RankSkew>& skew, std::span<const double> latency_p50_ns);

// Share of the traced iterations (first start to last end of each) in which at least one collective ran.
// `is_collective` by command. Nothing without spans.
std::optional<double> collective_share(const Timeline& timeline, const std::vector<bool>& is_collective);

}  // namespace weir
