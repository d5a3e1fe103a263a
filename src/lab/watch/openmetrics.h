// A sample as OpenMetrics text, and the file of it for Prometheus' textfile collector.
#pragma once

#include <string>
#include <string_view>

#include "lab/watch/sample.h"

namespace weir::watch {

// The first line of the text, which distinguishes a file of an earlier watch from somebody else's file.
inline constexpr std::string_view kMetricsBegin = "# TYPE weir_watch_source_info gauge\n";

// Unknown values are left out, never reported as 0. The text is also valid in Prometheus' older text format, which
// node_exporter reads.
std::string metrics_text(const Sample& sample);

// A file that is rewritten with each sample.
class MetricsFile {
 public:
  // An empty path: nothing is written. A file that a watch wrote may be replaced; any other only if `is_forced`.
  MetricsFile(std::string path, bool is_forced);
  void write(const Sample& sample) const;

 private:
  std::string path_;
};

}  // namespace weir::watch
