#include "trace/rank_skew.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/units.h"
#include "measure/statistics.h"
#include "trace/intervals.h"

namespace weir {
namespace {

constexpr double kChance = 0.001;  // of calling a rank a straggler where all are equal, for all ranks together

// Probability of `hits` or more of `count`, each with probability `p`. Exact; summed in logarithms.
double binomial_tail(double hits, std::size_t count, double p) {
  const auto n = static_cast<double>(count);
  double tail = 0;
  for (double k = std::ceil(hits); k <= n; ++k)
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(p) +
                     (n - k) * std::log1p(-p));
  return std::min(1.0, tail);
}

}  // namespace

std::optional<RankSkew> rank_skew(std::span<const std::vector<Arrival>> arrivals, double clock_error_ns) {
  const std::size_t ranks = arrivals.size();
  if (ranks < 2) return std::nullopt;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<double>> instances;
  std::int64_t origin = kNoTime;  // subtracted as an integer: nanoseconds since 1970 as doubles are 256 ns apart
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (const Arrival& arrival : arrivals[rank]) {
      std::vector<double>& times = instances[{arrival.iteration, arrival.command}];
      // A rank without this arrival leaves the list too short, so the next rank's index does not match.
      if (arrival.started_ns == kNoTime || times.size() != rank) continue;
      if (origin == kNoTime) origin = arrival.started_ns;
      times.push_back(static_cast<double>(minus(arrival.started_ns, origin)));
    }
  }
  RankSkew skew;
  skew.clock_error_ns = clock_error_ns;
  skew.last_share.assign(ranks, 0);
  std::vector<std::vector<double>> behind(ranks);
  std::vector<double> spreads;
  for (const auto& [key, times] : instances) {
    if (times.size() != ranks) continue;
    const auto [first, last] = std::minmax_element(times.begin(), times.end());
    spreads.push_back(*last - *first);
    const auto is_last = [&](double time) { return *last - time <= clock_error_ns; };
    const auto together = static_cast<double>(std::count_if(times.begin(), times.end(), is_last));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (is_last(times[rank])) skew.last_share[rank] += 1 / together;
      std::vector<double> others = times;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
      behind[rank].push_back(times[rank] - median(others));
    }
  }
  if (spreads.empty()) return std::nullopt;
  skew.instances = spreads.size();
  for (double& share : skew.last_share) share /= static_cast<double>(spreads.size());
  for (const std::vector<double>& delays : behind) skew.behind_ns.push_back(median(delays));
  std::sort(spreads.begin(), spreads.end());
  skew.p50_ns = quantile_sorted(spreads, 0.50);
  skew.p95_ns = quantile_sorted(spreads, 0.95);
  skew.p99_ns = quantile_sorted(spreads, 0.99);
  skew.max_ns = spreads.back();
  return skew;
}

std::vector<Straggler> find_stragglers(const std::optional<RankSkew>& skew, std::span<const double> latency_p50_ns) {
  const std::size_t ranks = std::max(skew ? skew->last_share.size() : 0, latency_p50_ns.size());
  const double typical = latency_p50_ns.empty() ? 0 : median(latency_p50_ns);
  std::vector<Straggler> found;
  if (ranks < 2) return found;
  const double fair = 1 / static_cast<double>(ranks);
  const double limit = ranks == 2 ? 0.75 : 2 * fair;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Straggler straggler;
    straggler.rank = static_cast<int>(rank);
    if (skew && skew->last_share[rank] > limit && skew->behind_ns[rank] > skew->clock_error_ns) {
      const double share = skew->last_share[rank];
      const double hits = std::floor(share * static_cast<double>(skew->instances) + 1e-9);
      if (binomial_tail(hits, skew->instances, fair) < kChance * fair) {
        straggler.last_share = share;
        straggler.behind_ns = skew->behind_ns[rank];
        straggler.reason =
            fmt::format("comes last to {:.0f} % of {} collectives (fair: {:.0f} %), {} behind the others", 100 * share,
                        skew->instances, 100 * fair, format_duration(std::max(0.0, skew->behind_ns[rank])));
      }
    }
    if (rank < latency_p50_ns.size() && typical > 0 && latency_p50_ns[rank] > kStragglerLatency * typical) {
      straggler.latency_ratio = latency_p50_ns[rank] / typical;
      straggler.reason += fmt::format("{}has a median latency {:.0f} % above the median of ranks",
                                      straggler.reason.empty() ? "" : "; ", 100 * (*straggler.latency_ratio - 1));
    }
    if (!straggler.reason.empty()) found.push_back(std::move(straggler));
  }
  return found;
}

std::optional<double> collective_share(const Timeline& timeline, const std::vector<bool>& is_collective) {
  struct Iteration {
    std::int64_t started_ns = INT64_MAX, ended_ns = INT64_MIN;
    std::vector<TimeInterval> collectives;
  };
  std::map<std::uint32_t, Iteration> iterations;
  for (const Span& span : timeline.spans) {
    if (span.started_ns == kNoTime || span.ended_ns == kNoTime) continue;
    Iteration& iteration = iterations[span.iteration];
    iteration.started_ns = std::min(iteration.started_ns, span.started_ns);
    iteration.ended_ns = std::max(iteration.ended_ns, span.ended_ns);
    if (span.command < is_collective.size() && is_collective[span.command])
      iteration.collectives.push_back({span.started_ns, span.ended_ns});
  }
  double whole = 0, busy = 0;
  for (auto& [number, iteration] : iterations) {
    whole += static_cast<double>(iteration.ended_ns - iteration.started_ns);
    // Collectives on several streams may overlap, so their union counts.
    busy += static_cast<double>(total_ns(unite_all(std::move(iteration.collectives))));
  }
  if (whole <= 0) return std::nullopt;
  return busy / whole;
}

}  // namespace weir
