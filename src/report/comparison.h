// Tells a comparison: as text for a terminal, as markdown for a review, as JSON for programs. Judges nothing itself.
#pragma once

#include <string>

#include "base/json.h"
#include "run/compare.h"

namespace weir {

// At most 80 columns, apart from words (paths, names) that are longer themselves.
std::string comparison_text(const Comparison& comparison);
std::string comparison_markdown(const Comparison& comparison);
// Schema weir.comparison/1; what is not known is null.
Json comparison_json(const Comparison& comparison, bool is_strict);

// "3 same, 1 slower": one line for the end of every form.
std::string verdict_line(const Comparison& comparison);

}  // namespace weir
