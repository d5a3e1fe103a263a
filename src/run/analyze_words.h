// Words for the numbers of a timeline, as parts of a weir.analysis/1 document use them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/json.h"
#include "measure/timeline.h"

namespace weir {

// Numbers are those of the whole or, where a `part` is given, of a slice of it.
struct TimelineWords {
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
  Json at(std::int64_t ns) const { return ns == kNoTime ? Json() : Json(ns - origin_ns); }
  Json call(const Timeline& part, std::uint32_t call) const {
    return call < part.calls.size() ? name(part.calls[call].name) : Json();
  }
  Json span(const Timeline& part, std::uint32_t span) const {
    return span < part.spans.size() ? name(part.spans[span].name) : Json();
  }
};

}  // namespace weir
