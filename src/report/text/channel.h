// Tells a weir.channel/1 document: as text for a terminal, as Markdown for a review. Judges nothing itself.
#pragma once

#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// At most 80 columns.
Report channel_report(const Json& document);
std::string channel_text(const Json& document);
std::string channel_markdown(const Json& document);

}  // namespace weir
