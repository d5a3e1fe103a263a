// Tells a weir.analysis/1 document: as text for a terminal, as Markdown for a review. Judges nothing itself.
#pragma once

#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// `is_full`: everything in the document; otherwise what decides, and what it lacks in one line each.
Report analysis_report(const Json& document, bool is_full);
std::string analysis_text(const Json& document, bool is_full);
std::string analysis_markdown(const Json& document, bool is_full);

// The hops of each class of command, with the dominating one named; shared with `weir profile`. Null: an empty section.
ReportSection waterfall_section(const Json& waterfall);

}  // namespace weir
