// Which ranks keep the others waiting, from arrival times at collectives and latencies of ranks. Reads numbers only;
// the caller brings every rank's times onto one clock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// When a rank arrived at a collective.
struct Arrival {
  std::uint32_t command = 0;
  std::uint32_t iteration = 0;
  std::int64_t started_ns = 0;  // on the clock shared by all ranks
};

struct RankSkew {
  std::size_t instances = 0;  // collectives in which every rank took part: (command, iteration)
  // Last minus first arrival.
  double p50_ns = 0, p95_ns = 0, p99_ns = 0, max_ns = 0;
  // By rank: the share of instances to which it came last. Ranks that came last together, within the clocks' precision,
  // share the instance.
  std::vector<double> last_share;
  // By rank: median of its arrival minus the median of the others'.
  std::vector<double> behind_ns;
  double clock_error_ns = 0;
};

// `arrivals` is by rank. Empty for fewer than two ranks, or where no collective has an arrival from every rank.
std::optional<RankSkew> rank_skew(std::span<const std::vector<Arrival>> arrivals, double clock_error_ns);

struct Straggler {
  int rank = 0;
  std::optional<double> last_share;     // set where it comes last too often
  std::optional<double> behind_ns;      // set together with last_share
  std::optional<double> latency_ratio;  // p50 over the median of all ranks' p50, set where it is too high
  std::string reason;                   // in words, with the figures
};

inline constexpr double kStragglerLatency = 1.10;

// Ranks that come last in more than twice their fair share of collectives (75 % with two ranks), more often than by
// chance and by more than the clocks' error, or whose median latency is more than 10 % above the median of the ranks.
// `latency_p50_ns` is by rank, empty where there is no latency.
std::vector<Straggler> find_stragglers(const std::optional<RankSkew>& skew, std::span<const double> latency_p50_ns);

// The share of traced iterations (first start to last end of each) during which at least one collective ran.
// `is_collective` is by command. Empty without spans.
std::optional<double> collective_share(const Timeline& timeline, const std::vector<bool>& is_collective);

}  // namespace weir
