// What a step's time went into, as the bars of an overlap item: parts that add up to its span. Knows the times of
// weir.overlap/1 and weir.analysis/1.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace weir::page {

struct OverlapBar {
  std::string label;
  double span_ns = 0;
  double compute_only_ns = 0;  // compute while no communication ran
  double hidden_ns = 0;        // communication with something beside it
  double exposed_ns = 0;       // communication while nothing else ran
  double idle_ns = 0;
  double other_ns = 0;  // the rest: copies alone, above all
};

// `times` as weir.overlap/1 has them for a pass (exposed_ns, hidden_ns) or weir.analysis/1 for a device
// (alone_communication_ns, hidden_communication_ns). Nothing is negative, and parts add up; where the document's do
// not, a note says so. False where there is no span.
bool make_bar(const Json& times, OverlapBar& bar, std::vector<std::string>& notes);

Json to_json(const OverlapBar& bar);

}  // namespace weir::page
