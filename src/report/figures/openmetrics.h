// Results as OpenMetrics 1.0 text, for Prometheus. Knows rows of figures; writes no file.
#pragma once

#include <span>
#include <string>

#include "report/figures/figures.h"

namespace weir {

// Gauges only, in base units, without timestamps: node_exporter's textfile collector refuses those, so when a result
// was made is a gauge of its own. Rows with equal labels (repeated runs) are told apart by the label `repeat`.
std::string results_openmetrics(std::span<const FigureRow> rows);

}  // namespace weir
