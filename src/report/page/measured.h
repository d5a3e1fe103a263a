// What a report takes from one measured configuration, Weir's or AORTA's: the numbers of its point on a curve, its
// samples, and the rest of its document. Knows result files; judges nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/page/page.h"
#include "run/load.h"

namespace weir::page {

struct Measured {
  std::size_t source = 0;
  std::string path;          // of the file
  bool is_of_sweep = false;  // its curve contains points of its file only
  std::optional<std::size_t> environment;
  ResultPoint point;  // key, samples, failure
  std::string curve;  // "inline", "threads", "graph on 16 units"
  std::string unit, scaling, status;
  int streams = 0;
  Json throughput, throughput_interval, host_ns_per_command, floor_ns_per_command;
  Json latency_ns = {{"p50", nullptr}, {"p50_interval", nullptr}, {"p99", nullptr}};
  Json document;  // the result, without its samples

  std::string name(const char* key) const;  // from the point's key; empty where unknown
};

// For the result, Weir's or AORTA's, from which `point` was read. Registers its environment.
Measured measured_of(Page& page, std::size_t source, const std::string& path, const Json& result, ResultPoint point);

// All measurements of a result file, in order. A result that cannot be read is refused, and the others are kept.
std::vector<Measured> read_measured(Page& page, std::size_t source, const std::string& path, const Json& document);

// Whether this is an AORTA result or sweep, which carry no schema.
bool is_aorta(const Json& document);

}  // namespace weir::page
