// A side of a comparison from the report of a runtime log (`weir amd log --report json`). Knows that document; no log.
#pragma once

#include <string>

#include "amd/compare/case_side.h"
#include "base/json.h"

namespace weir::amd {

// Documents may come from anywhere: nothing in it is taken for granted. Rejects one without processes.
CaseSide side_of_log_report(const Json& document, const std::string& name);

}  // namespace weir::amd
