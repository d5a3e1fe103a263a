// A comparison as JUnit XML, which most CI systems read. Knows judgements; writes no file.
#pragma once

#include <string>

#include "report/figures/judgement.h"

namespace weir {

// One testcase per case: slower is a failure, a failed run an error, ambiguous is skipped (with --strict a failure),
// and what only one side has is skipped. Characters that XML does not allow are left out.
std::string junit_xml(const Judged& judged);

}  // namespace weir
