// Measurements as curves over streams and as distributions: what belongs together is drawn together, and nothing from
// two environments is. Knows measurements; reads no file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/page/measured.h"

namespace weir::page {

struct Curve {
  std::string name;
  std::vector<const Measured*> points;  // ascending by streams, one for each count
  Json analysis;                        // as weir.sweep/1 has it; null where no point has a throughput
};

// Measurements whose environment and key agree but for streams and the way of submitting.
struct CurveGroup {
  std::string title;  // the workload, and what tells it from other groups of the same
  std::vector<Curve> curves;
  std::string id;  // of the item of `scaling`

  const Measured& first() const { return *curves.front().points.front(); }
};

// Groups them, in the order in which they come. The groups borrow the measurements.
std::vector<CurveGroup> group_measured(const Page& page, std::span<const Measured> all);

// One item of `scaling` and one of `distributions`, with at most so many values for each point.
void add_group(Page& page, CurveGroup& group, std::size_t most_values);

}  // namespace weir::page
