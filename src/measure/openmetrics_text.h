// The text of OpenMetrics 1.0, family by family. Knows the format, but not what is measured; writes no file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Gauges and counters only: node_exporter's textfile collector uses the parser of Prometheus' older text format, which
// rejects a whole file for one `# TYPE x info`, and timestamps too. Therefore neither is written.
class OpenMetricsText {
 public:
  // `prefix` starts every name: "weir_watch_".
  explicit OpenMetricsText(std::string prefix) : prefix_(std::move(prefix)) {}

  // All samples of a family must follow it directly. A name ends with its unit, if it has one.
  void family(std::string_view name, std::string_view type, std::string_view unit, std::string_view help);
  // Omits families without samples, and values that are not finite. Labels must differ from those of the family's other
  // samples.
  void add(const MetricLabels& labels, double value);
  // The whole text; nothing may be added afterwards.
  std::string end();

 private:
  std::string prefix_, text_, name_, suffix_, opening_;
};

}  // namespace weir
