// The document of `weir amd hqd` (weir.amd_hqd/1) for people.
#pragma once

#include <string>

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

// `is_full` lists every queue and every GPU.
Report amd_hqd_report(const Json& document, bool is_full);
std::string amd_hqd_text(const Json& document, bool is_full);
std::string amd_hqd_markdown(const Json& document, bool is_full);

}  // namespace weir
