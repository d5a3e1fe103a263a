// Ranges that a program names by NVTX, as entries of a recorder. NVTX loads this library where NVTX_INJECTION64_PATH
// names it, and asks nobody else: no profiler is needed.
#pragma once

#include "submit/inject/recorder.h"

namespace weir::inject {

// From now on ranges go there; null: nowhere.
void record_ranges(Recorder* recorder) noexcept;

}  // namespace weir::inject
