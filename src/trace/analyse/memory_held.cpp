#include "trace/analyse/memory_held.h"

#include <algorithm>

namespace weir {
namespace {

void raise(MemoryPeak& peak, std::uint64_t bytes, const MemoryChange& change) {
  if (peak.at_ns != kNoTime && bytes <= peak.bytes) return;
  peak.bytes = bytes;
  peak.at_ns = change.at_ns;
  peak.operation = change.operation;
  peak.line = change.line;
}

// Disjoint steps by start: the one in which this happened.
std::optional<std::size_t> step_at(std::span<const TraceRange> steps, std::int64_t at_ns) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), at_ns,
                                      [](std::int64_t ns, const TraceRange& step) { return ns < step.started_ns; });
  if (after == steps.begin() || std::prev(after)->ended_ns < at_ns) return std::nullopt;
  return static_cast<std::size_t>(after - steps.begin()) - 1;
}

std::vector<MemoryStep> memory_steps(const std::vector<MemoryChange>& changes, std::span<const TraceRange> steps) {
  std::vector<MemoryStep> found;
  auto change = changes.begin();
  std::uint64_t now = 0;
  for (const TraceRange& step : steps) {
    for (; change != changes.end() && change->at_ns < step.started_ns; ++change) now = change->allocated_bytes;
    const bool is_known = change != changes.begin();
    MemoryStep use{step.name, is_known ? now : 0, now};
    const auto first = change;
    for (; change != changes.end() && change->at_ns <= step.ended_ns; ++change) {
      now = change->allocated_bytes;
      use.peak_bytes = std::max(use.peak_bytes, now);
    }
    use.end_bytes = now;
    if (is_known || change != first) found.push_back(use);
  }
  return found;
}

}  // namespace

MemoryHeld memory_held(const Timeline& timeline, std::span<const TraceRange> steps) {
  MemoryHeld found;
  if (timeline.memory.empty()) {
    found.reason = "the source records no allocations (PyTorch: profile_memory=True)";
    return found;
  }
  for (const MemoryChange& change : timeline.memory) {
    if (change.bytes > 0) {
      ++found.allocations;
      if (__builtin_add_overflow(found.allocated_bytes, static_cast<std::uint64_t>(change.bytes),
                                 &found.allocated_bytes))
        found.allocated_bytes = UINT64_MAX;
    } else if (change.bytes < 0) {
      ++found.frees;
    }
    raise(found.allocated, change.allocated_bytes, change);
    raise(found.reserved, change.reserved_bytes, change);
  }
  found.allocated.step = step_at(steps, found.allocated.at_ns);
  found.reserved.step = step_at(steps, found.reserved.at_ns);
  found.steps = memory_steps(timeline.memory, steps);
  found.grows = found.steps.size() > 3;
  for (std::size_t i = 1; i < found.steps.size(); ++i) {
    const bool has_grown = found.steps[i].end_bytes > found.steps[i - 1].end_bytes;
    found.grown += has_grown ? 1 : 0;
    found.grows = found.grows && (has_grown || i == 1);
  }
  return found;
}

}  // namespace weir
