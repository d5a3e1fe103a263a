// The text of OpenMetrics 1.0, family by family. Knows the format and nothing of what is measured; writes no file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Gauges and counters only: node_exporter's textfile collector reads files as Prometheus' older text format, whose
// parser refuses a file for one `# TYPE x info`, and timestamps too. So there are neither.
class OpenMetricsText {
 public:
  // `prefix` begins every name: "weir_watch_".
  explicit OpenMetricsText(std::string prefix) : prefix_(std::move(prefix)) {}

  // All samples of a family follow it at once. A name ends with its unit, where it has one.
  void family(std::string_view name, std::string_view type, std::string_view unit, std::string_view help);
  // A family without any sample is left out, and so is what is no finite number. Labels must differ from those of the
  // family's other samples.
  void add(const MetricLabels& labels, double value);
  // The whole text; nothing may be added afterwards.
  std::string end();

 private:
  std::string prefix_, text_, name_, suffix_, opening_;
};

}  // namespace weir
