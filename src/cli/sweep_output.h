// Runs one sweep and prints its table to the terminal; shared by sweep and run-priority.
#pragma once

#include "cli/run_flags.h"
#include "run/sweep.h"

namespace weir::cli {

// The counts that the workload accepts; reports the others on stderr. Empty where none fits.
std::vector<int> fitting_counts(const Workload& workload, const std::vector<int>& asked);

// Prints rows as they arrive, unless the flags say otherwise. Returns 0, 1 where a point failed, 130 where it was
// interrupted. Ranks other than 0 (`communicator`, if any) take part silently. `reopen` is as in SweepControl.
int print_sweep(Device& device, const SweepRequest& request, const RunFlags& flags, Communicator* communicator,
                std::function<Device&(int compute_units)> reopen = nullptr);

}  // namespace weir::cli
