// OpenMetrics text against the grammar of version 1.0, and what node_exporter's older parser takes of it, by a reader
// of our own that knows nothing of the writer.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace weir::testing {

struct MetricPoint {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct Exposition {
  std::map<std::string, std::string> types, units, helps;
  std::vector<MetricPoint> points;
  // The first of that name whose labels hold all of `labels`.
  const MetricPoint* find(const std::string& name, const std::map<std::string, std::string>& labels = {}) const;
};

// Throws what is wrong. Families may not be split, TYPE comes first and once, a unit ends the name, counters end as
// they must, no point is there twice, no value is NaN or infinite, there is no timestamp, and EOF is the last line.
Exposition check_openmetrics(const std::string& text);

}  // namespace weir::testing
