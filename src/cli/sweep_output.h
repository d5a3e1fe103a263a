// Runs one sweep with its table on the terminal; shared by sweep and run-priority.
#pragma once

#include "run/sweep.h"

namespace weir::cli {

// Prints rows as they come. Returns 0, 1 where a point failed, 130 where it was interrupted.
int print_sweep(Device& device, const SweepRequest& request, bool is_quiet);

}  // namespace weir::cli
