// A sample as OpenMetrics text, for Prometheus' textfile collector. Knows samples and the text format; writes no file.
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

}  // namespace weir::watch
