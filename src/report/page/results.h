// Shows the measurements of all input files as curves, distributions and findings.
#pragma once

#include <span>

#include "report/page/measured.h"

namespace weir::page {

// Points from several files that differ only in streams form one curve; points from two environments never do.
void add_results(Page& page, std::span<const Measured> all);

}  // namespace weir::page
