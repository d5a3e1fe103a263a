// A document of weir.amd_log/1 as text for a terminal or as Markdown. Knows the document; no log.
#pragma once

#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// `is_full`: long lists are not cut.
Report amd_log_report(const Json& document, bool is_full);
std::string amd_log_text(const Json& document, bool is_full);
std::string amd_log_markdown(const Json& document, bool is_full);

}  // namespace weir
