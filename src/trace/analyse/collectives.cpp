#include "trace/analyse/collectives.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "measure/statistics.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {

std::optional<double> bus_factor(CollectiveKind kind, std::uint32_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return ranks == 0 ? std::nullopt : std::optional(2 * (n - 1) / n);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return ranks == 0 ? std::nullopt : std::optional((n - 1) / n);
    case CollectiveKind::unknown:
      return std::nullopt;
    default:
      return 1;
  }
}

std::vector<CollectiveKind> collective_kinds(const Timeline& timeline) {
  std::vector<CollectiveKind> kinds(timeline.spans.size(), CollectiveKind::unknown);
  for (const CollectiveFacts& facts : timeline.collectives)
    if (facts.span < kinds.size()) kinds[facts.span] = facts.kind;
  return kinds;
}

Collectives collectives(const Timeline& timeline) {
  struct Instances {
    std::vector<double> durations;
    double bytes = 0;
    double best = 0;  // bytes per second
  };
  using Key = std::tuple<CollectiveKind, std::uint32_t, std::uint32_t, std::uint64_t>;
  std::map<Key, Instances> classes;
  Collectives found;
  bool lacks_bytes = false, lacks_ranks = false;
  for (const CollectiveFacts& facts : timeline.collectives) {
    if (facts.span >= timeline.spans.size() || !is_timed(timeline.spans[facts.span])) continue;
    const Span& span = timeline.spans[facts.span];
    const std::uint64_t size = facts.bytes == 0 ? 0 : std::bit_floor(facts.bytes);
    lacks_bytes |= size == 0;
    lacks_ranks |= facts.ranks == 0;
    Instances& instances = classes[{facts.kind, facts.group, facts.ranks, size}];
    const double took_ns = length_between(span.started_ns, span.ended_ns);
    instances.durations.push_back(took_ns);
    instances.bytes += static_cast<double>(facts.bytes);
    if (took_ns > 0) instances.best = std::max(instances.best, static_cast<double>(facts.bytes) / took_ns * 1e9);
  }
  for (auto& [key, instances] : classes) {
    CollectiveClass made;
    std::uint64_t size = 0;
    std::tie(made.kind, made.group, made.ranks, size) = key;
    std::vector<double>& durations = instances.durations;
    std::sort(durations.begin(), durations.end());
    made.count = durations.size();
    for (const double duration : durations) made.total_ns += duration;
    made.p50_ns = quantile_sorted(durations, 0.50);
    made.p99_ns = quantile_sorted(durations, 0.99);
    if (size != 0) {
      made.from_bytes = size;
      made.bytes = instances.bytes;
      if (made.total_ns > 0) {
        made.algorithm_bandwidth = instances.bytes / made.total_ns * 1e9;
        if (const auto factor = bus_factor(made.kind, made.ranks)) {
          made.bus_bandwidth = *made.algorithm_bandwidth * *factor;
          made.best_bus_bandwidth = instances.best * *factor;
        }
      }
    }
    found.count += made.count;
    found.total_ns += made.total_ns;
    found.classes.push_back(made);
  }
  std::stable_sort(found.classes.begin(), found.classes.end(),
                   [](const CollectiveClass& a, const CollectiveClass& b) { return a.total_ns > b.total_ns; });
  if (found.count == 0)
    found.reason = "no collectives";
  else if (lacks_bytes)
    found.reason = "the source does not report the size of every collective, so some have no bandwidth";
  else if (lacks_ranks)
    found.reason = "the source does not report how many ranks take part, so there is no bus bandwidth";
  return found;
}

}  // namespace weir
