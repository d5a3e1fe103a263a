// A sample as OpenMetrics text, for Prometheus' textfile collector. Knows samples and the text format; writes no file.
#pragma once

#include <string>
#include <string_view>

#include "lab/watch/sample.h"

namespace weir::watch {

// How the text begins: by it a file of an earlier watch is told from somebody else's.
inline constexpr std::string_view kMetricsBegin = "# TYPE weir_watch_source_info gauge\n";

// What is not known has no sample: never 0. Valid as Prometheus' older text format too, which node_exporter reads.
std::string metrics_text(const Sample& sample);

}  // namespace weir::watch
