// Which spans of a timeline are work of the device, and in which order. The analyses share these definitions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/timeline.h"

namespace weir {

// For commands, calls and ranges.
template <class Stretch>
bool is_timed(const Stretch& one) noexcept {
  return one.started_ns != kNoTime && one.ended_ns != kNoTime && one.ended_ns >= one.started_ns;
}

// Host functions occupy their stream, but not the device.
inline bool is_device_work(const Span& span) noexcept { return is_timed(span) && span.kind != SpanKind::host; }

// When the driver accepted it, or else when it was submitted; kNoTime where neither is known.
inline std::int64_t handed_over_ns(const Span& span) noexcept {
  return span.accepted_ns != kNoTime ? span.accepted_ns : span.submitted_ns;
}

// When its hardware queue could go on to the next command: known as its launch or, at the latest, its start.
inline std::int64_t left_queue_ns(const Span& span) noexcept {
  return span.launched_ns != kNoTime ? std::min(span.launched_ns, span.started_ns) : span.started_ns;
}

// Adds to a list that is sorted worst first and holds at most `most` items.
template <class Item, class IsWorse>
void keep_worst(std::vector<Item>& worst, const Item& item, std::size_t most, IsWorse is_worse) {
  const auto at = std::upper_bound(worst.begin(), worst.end(), item, is_worse);
  if (at == worst.end() && worst.size() == most) return;
  worst.insert(at, item);
  if (worst.size() > most) worst.pop_back();
}

// Indices of the device's work by start, then by end, then in the given order.
std::vector<std::uint32_t> device_work_by_start(const Timeline& timeline);

// The same for everything that has times, which is what streams see.
std::vector<std::uint32_t> timed_by_start(const Timeline& timeline);

// Indices of spans, separated by stream or queue; within a lane they keep the given order.
struct SpanLanes {
  std::vector<std::int32_t> ids;  // ascending: indices of streams, or ids of queues
  std::vector<std::size_t> ends;  // by lane, in `spans`
  std::vector<std::uint32_t> spans;

  std::size_t begin_of(std::size_t lane) const noexcept { return lane == 0 ? 0 : ends[lane - 1]; }
  std::size_t count(std::size_t lane) const noexcept { return ends[lane] - begin_of(lane); }
  std::span<const std::uint32_t> of(std::size_t lane) const noexcept {
    return std::span(spans).subspan(begin_of(lane), count(lane));
  }
};

// Linear: with a sort by lane, all of `gaps` took 2.5 s instead of 1.5 s for 5 million spans (a shared Neoverse-V1
// core, November 2026).
SpanLanes lanes_by_stream(const Timeline& timeline, std::span<const std::uint32_t> order);
// Leaves out spans whose queue is not known.
SpanLanes lanes_by_queue(const Timeline& timeline, std::span<const std::uint32_t> order);

}  // namespace weir
