// How the numbers of a comparison are said, in every form that tells one.
#pragma once

#include <string>

#include "run/compare.h"

namespace weir {

// "4.21 us", "1.2 k", "-"
std::string value_text(const MetricComparison& metric, const std::optional<double>& value);
// "[1.071, 1.110]"
std::string interval_text(const MetricComparison& metric);
// "<0.001"
std::string p_text(const MetricComparison& metric);
// "latency 4.21 us -> 4.60 us, 1.093x [1.071, 1.110], p <0.001: slower (why)"
std::string metric_line(const MetricComparison& metric);
// "Ratios are test / baseline of medians ..."
std::string method_line(const Comparison& comparison);
// How many times slower the test is by its worst metric; 0 where no metric was judged.
double slowness_of(const PairComparison& pair);

}  // namespace weir
