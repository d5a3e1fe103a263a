// Tells a comparison: as text for a terminal, as markdown for a review, as JSON for programs. Judges nothing itself.
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

}  // namespace weir
