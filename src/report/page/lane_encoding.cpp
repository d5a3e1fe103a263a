#include "report/page/lane_encoding.h"

#include <algorithm>
#include <tuple>

#include "report/page/packed_bytes.h"

namespace weir::page {
EncodedLane encode_lane(std::vector<LaneSpan>& spans) {
  const auto is_before = [](const LaneSpan& a, const LaneSpan& b) {
    return std::tie(a.start_ns, a.end_ns, a.name) < std::tie(b.start_ns, b.end_ns, b.name);
  };
  if (!std::is_sorted(spans.begin(), spans.end(), is_before)) std::sort(spans.begin(), spans.end(), is_before);
  EncodedLane lane;
  lane.count = spans.size();
  PackedBytes packer;
  packer.reserve(6 * spans.size());
  std::uint64_t before = 0;
  for (const LaneSpan& span : spans) {
    packer.add_number(span.start_ns - before);
    packer.add_number(span.end_ns - span.start_ns);
    packer.add_number(span.name);
    before = span.start_ns;
    const std::uint64_t from = std::max(span.start_ns, lane.end_ns);
    if (span.end_ns > from) lane.busy_ns += span.end_ns - from;
    lane.end_ns = std::max(lane.end_ns, span.end_ns);
  }
  lane.spans = packer.finish();
  return lane;
}

}  // namespace weir::page
