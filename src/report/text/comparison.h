// A comparison as text for a terminal, as Markdown for a review, as JSON for programs. Judges nothing itself.
#pragma once

#include <string>

#include "base/json.h"
#include "run/compare.h"

namespace weir {

// At most 80 columns, except for longer words (paths, names).
std::string comparison_text(const Comparison& comparison);
// Worst first; many equal results are folded. At most `most` bytes, so that it fits into a comment on GitHub: what does
// not fit is left out, with a remark. Names from files have no effect there: no markup, no link, no mention.
std::string comparison_markdown(const Comparison& comparison, std::size_t most = 65'536);
// Schema weir.comparison/2; unknown values are null.
Json comparison_json(const Comparison& comparison, bool is_strict);

// "3 same, 1 slower": the last line of every form.
std::string verdict_line(const Comparison& comparison);

// Numbers are formatted the same way in every form.
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
