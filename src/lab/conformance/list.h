// The groups of cases by name, for list.cpp and for the files that define them.
#pragma once

#include <vector>

#include "lab/conformance/conformance.h"

namespace weir::conformance {

using Cases = std::vector<ConformanceCase>;

Cases kernels();
Cases gemm();
Cases copies();
Cases buffers();
Cases streams();
Cases events();
Cases priorities();
Cases host_functions();
Cases graphs();
Cases timelines();
Cases probes();
Cases compute_units();
Cases sessions();
Cases errors();

}  // namespace weir::conformance
