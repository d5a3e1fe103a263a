#include "trace/device_spans.h"

#include <algorithm>
#include <tuple>

namespace weir {
namespace {

std::vector<std::uint32_t> ordered(const Timeline& timeline, bool (*is_wanted)(const Span&) noexcept) {
  std::vector<std::uint32_t> order;
  order.reserve(timeline.spans.size());
  for (std::size_t i = 0; i < timeline.spans.size(); ++i)
    if (is_wanted(timeline.spans[i])) order.push_back(static_cast<std::uint32_t>(i));
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    const Span &first = timeline.spans[a], &second = timeline.spans[b];
    return std::tie(first.started_ns, first.ended_ns, a) < std::tie(second.started_ns, second.ended_ns, b);
  };
  // Importers' spans come so; those of sessions need not.
  if (!std::is_sorted(order.begin(), order.end(), earlier)) std::sort(order.begin(), order.end(), earlier);
  return order;
}

}  // namespace

std::vector<std::uint32_t> device_work_by_start(const Timeline& timeline) { return ordered(timeline, is_device_work); }

std::vector<std::uint32_t> timed_by_start(const Timeline& timeline) { return ordered(timeline, is_timed); }

}  // namespace weir
