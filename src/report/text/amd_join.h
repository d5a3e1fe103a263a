// The document weir.amd_join/1 as text: queues from stream to hardware slot, what matches rest on, clocks. Knows the
// document only.
#pragma once

#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// `is_full`: also queues of other processes, and handles of streams.
Report amd_join_report(const Json& document, bool is_full);
std::string amd_join_text(const Json& document, bool is_full);
std::string amd_join_markdown(const Json& document, bool is_full);

}  // namespace weir
