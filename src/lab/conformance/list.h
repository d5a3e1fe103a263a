// The groups of cases: a file each beside this one, and its name here.
#pragma once

#include <vector>

#include "lab/conformance/conformance.h"

#define WEIR_CASE_GROUPS                                                                                              \
  kernels(), gemm(), copies(), buffers(), streams(), events(), priorities(), host_functions(), graphs(), timelines(), \
      probes(), compute_units(), sessions(), errors()

namespace weir::conformance {

using Cases = std::vector<ConformanceCase>;

Cases WEIR_CASE_GROUPS;

}  // namespace weir::conformance
