// Bandwidth and arithmetic of this CPU with some threads, measured. Knows threads and memory; never a package.
#pragma once

#include "lab/kernels/roofline.h"

namespace weir::bench {

Ceilings cpu_ceilings(int threads);

}  // namespace weir::bench
