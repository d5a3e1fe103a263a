// What KFD did in a kernel trace (weir.amd_ftrace/1), for people. Reads the document only.
#pragma once

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// `is_full`: all processes and creates of the document.
Report ftrace_report(const Json& document, bool is_full);

}  // namespace weir
