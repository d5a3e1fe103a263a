// What `weir history` tells (weir.history/1) as text and Markdown. Knows the document only.
#pragma once

#include <string>

#include "base/json.h"

namespace weir {

// `is_full`: all runs of a trend, not only the last ones.
std::string history_text(const Json& document, bool is_full = false);
std::string history_markdown(const Json& document, bool is_full = false);

}  // namespace weir
