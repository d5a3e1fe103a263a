// The comparison of two sides as a document, weir.amd_compare/1 (docs/schema). Knows the comparison, but no files.
#pragma once

#include "amd/compare/case_side.h"
#include "base/json.h"

namespace weir::amd {

Json case_comparison(const CaseSide& a, const CaseSide& b);

}  // namespace weir::amd
