// A comparison as text for a terminal, as Markdown for a review, as JSON for programs. Judges nothing itself.
#pragma once

#include <string>

#include "base/json.h"
#include "run/compare.h"

namespace weir {

// At most 80 columns, apart from words (paths, names) that are longer themselves.
std::string comparison_text(const Comparison& comparison);
// The worst first, what is the same folded away where it is much; at most `most` bytes, so that it fits into a comment
// on GitHub: what has no room is left out, with a remark. Names from files take no effect there: no markup, no link, no
// mention.
std::string comparison_markdown(const Comparison& comparison, std::size_t most = 65'536);
// Schema weir.comparison/1; what is not known is null.
Json comparison_json(const Comparison& comparison, bool is_strict);

// "3 same, 1 slower": one line for the end of every form.
std::string verdict_line(const Comparison& comparison);

// How its numbers are said in every form.
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
