// What stands out in measurements: failures first, then what holds them back, each with its figures and what to do.
// Rests on measured numbers alone.
#pragma once

#include "report/page/curves.h"

namespace weir::page {

// Of a group that was added to the page: findings point to its item.
void find_in_group(Page& page, const CurveGroup& group);

}  // namespace weir::page
