#include "trace/analyse/top_kernels.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <unordered_map>

#include "measure/statistics.h"
#include "trace/device_spans.h"
#include "trace/intervals.h"

namespace weir {

TopKernels top_kernels(const Timeline& timeline, std::size_t most) {
  TopKernels found;
  std::vector<KernelUse> uses;
  std::vector<std::uint32_t> use_of(timeline.spans.size());
  std::unordered_map<std::uint64_t, std::uint32_t> places;  // by name and kind
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    if (!is_device_work(span)) continue;
    const std::uint64_t key = std::uint64_t{span.name} << 8 | static_cast<std::uint64_t>(span.kind);
    const auto [at, is_new] = places.try_emplace(key, static_cast<std::uint32_t>(uses.size()));
    if (is_new) {
      uses.emplace_back();
      uses.back().name = span.name;
      uses.back().kind = span.kind;
    }
    use_of[i] = at->second;
    KernelUse& use = uses[at->second];
    const auto duration = length_between(span.started_ns, span.ended_ns);
    use.min_ns = use.count == 0 ? duration : std::min(use.min_ns, duration);
    use.max_ns = std::max(use.max_ns, duration);
    use.total_ns += duration;
    ++use.count;
    found.total_ns += duration;
    ++found.commands;
  }
  found.kernels = uses.size();

  // All durations in one array, each use's own contiguous: a list per name would cost more than the durations.
  std::vector<std::size_t> ends(uses.size());
  std::size_t begin = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    ends[i] = begin;
    begin += uses[i].count;
  }
  std::vector<double> durations(found.commands);
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    if (is_device_work(span)) durations[ends[use_of[i]]++] = length_between(span.started_ns, span.ended_ns);
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    KernelUse& use = uses[i];
    const std::span<double> own(durations.data() + (ends[i] - use.count), use.count);
    std::sort(own.begin(), own.end());
    use.mean_ns = use.total_ns / static_cast<double>(use.count);
    use.p50_ns = quantile_sorted(own, 0.50);
    use.p99_ns = quantile_sorted(own, 0.99);
    use.share = found.total_ns > 0 ? use.total_ns / found.total_ns : 0;
  }
  std::sort(uses.begin(), uses.end(), [](const KernelUse& a, const KernelUse& b) {
    return std::tie(b.total_ns, a.name, a.kind) < std::tie(a.total_ns, b.name, b.kind);
  });
  for (std::size_t i = std::min(most, uses.size()); i < uses.size(); ++i) {
    found.rest_count += uses[i].count;
    found.rest_ns += uses[i].total_ns;
  }
  if (uses.size() > most) uses.resize(most);
  found.top = std::move(uses);
  return found;
}

}  // namespace weir
