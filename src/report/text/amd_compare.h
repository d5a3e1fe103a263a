// Tells a weir.amd_compare/1 document: as text for a terminal, as Markdown for a review. Judges nothing itself.
#pragma once

#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// At most 80 columns.
Report amd_compare_report(const Json& document);
std::string amd_compare_text(const Json& document);
std::string amd_compare_markdown(const Json& document);

}  // namespace weir
