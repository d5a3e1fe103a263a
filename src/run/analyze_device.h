// What the files that write the part of the `analyze` document about a device share. Knows no analysis.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/json.h"
#include "measure/timeline.h"
#include "run/analyze.h"
#include "trace/intervals.h"

namespace weir {

struct BusyTimes;
struct Collectives;
struct ExposedCauses;
struct OverlapSlowdown;

// Indices refer to the whole timeline or, if a `part` is given, to a slice of it.
struct AnalysisWords {
  const Timeline& whole;
  std::int64_t origin_ns;

  Json name(std::uint32_t name) const { return name < whole.names.size() ? Json(whole.names[name]) : Json(); }
  Json stream(std::uint16_t stream) const {
    return stream < whole.streams.size() ? Json(whole.streams[stream].label) : Json(stream);
  }
  Json queue(std::int32_t queue) const {
    const auto at = std::lower_bound(whole.queues.begin(), whole.queues.end(), queue,
                                     [](const TraceQueue& a, std::int32_t id) { return a.id < id; });
    return at != whole.queues.end() && at->id == queue ? Json(at->label) : Json(queue);
  }
  Json at(std::int64_t ns) const { return ns == kNoTime ? Json() : Json(minus(ns, origin_ns)); }
  Json call(const Timeline& part, std::uint32_t call) const {
    return call < part.calls.size() ? name(part.calls[call].name) : Json();
  }
  Json span(const Timeline& part, std::uint32_t span) const {
    return span < part.spans.size() ? name(part.spans[span].name) : Json();
  }
};

template <class Item>
std::span<const Item> first_of(const std::vector<Item>& all, std::size_t most) {
  return std::span(all).first(std::min(most, all.size()));
}

Json collectives_json(const Collectives& found, const AnalysisWords& words);
Json slowdown_json(const OverlapSlowdown& found, const AnalysisWords& words, std::size_t top);
// Share of communication time that overlapped any other activity; null without communication.
Json overlap_efficiency_json(const BusyTimes& times);
Json overlap_json(const Timeline& part);
Json exposed_causes_json(const ExposedCauses& found, const Timeline& part, const AnalysisWords& words);

}  // namespace weir
