// What a search for better settings (weir.overlap_tune/1) found, for people.
#pragma once

#include "base/json.h"
#include "report/text/sections.h"

namespace weir {

Report tune_report(const Json& document);

}  // namespace weir
