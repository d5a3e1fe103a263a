// Measurements of all files that a report is made of, as curves, distributions and findings.
#pragma once

#include <span>

#include "report/page/measured.h"

namespace weir::page {

// Points of several files that differ in streams alone make one curve; those of two environments never do.
void add_results(Page& page, std::span<const Measured> all);

}  // namespace weir::page
