// Results as text for a terminal of 80 columns. Reads results only; never writes to a terminal itself.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// One `weir.result/1` document: what was run, what came out, what to be careful about.
std::string describe_result(const Json& result);

inline constexpr std::size_t kSubmitWidth = 11;  // of the column of ways to submit, where none has a longer name

// The head and the rows of a sweep's table, apart, so that rows can be printed as they come.
std::string sweep_head(const Json& settings, std::size_t submit_width = kSubmitWidth);
// `was_kept`: the point was in the file before.
std::string sweep_row(const Json& result, bool was_kept = false, std::size_t submit_width = kSubmitWidth);
// "inline: best at 8 streams (...); 4 are enough for 95% of it. Scalability law: ...": one curve's analysis, as
// `weir.sweep/1` has it, with the throughput's unit. Empty where there is one point.
std::string scaling_words(const std::string& name, const Json& analysis, const std::string& unit);
// What a sweep shows as a whole: best point, knee, efficiency, scalability law.
std::string sweep_summary(const Json& sweep);

}  // namespace weir
