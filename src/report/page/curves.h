// Shows measurements as curves over streams and as distributions. Groups what belongs together, and never mixes two
// environments. Knows measurements; reads no file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/page/measured.h"

namespace weir::page {

struct Curve {
  std::string name;
  std::vector<const Measured*> points;  // ascending by streams, one per count
  Json analysis;                        // as in weir.sweep/1; null where no point has a throughput
};

// Measurements whose environment and key agree except for streams and the way of submitting.
struct CurveGroup {
  std::string title;  // the workload, and what distinguishes it from other groups of the same workload
  std::vector<Curve> curves;
  std::string id;  // of the item of `scaling`

  const Measured& first() const { return *curves.front().points.front(); }
};

// Groups them in order of appearance. The groups borrow the measurements.
std::vector<CurveGroup> group_measured(const Page& page, std::span<const Measured> all);

// Adds one item of `scaling` and one of `distributions`, with at most `max_values` values per point.
void add_group(Page& page, CurveGroup& group, std::size_t max_values);

}  // namespace weir::page
