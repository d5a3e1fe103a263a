// Runs one sweep and prints its table to the terminal; shared by sweep and by classes of workloads.
#pragma once

#include "cli/run_flags.h"
#include "run/sweep.h"

namespace weir::cli {

// The counts that the workload accepts; reports the others on stderr. Empty where none fits.
std::vector<int> fitting_counts(const Workload& workload, const std::vector<int>& asked);

// Prints rows as they arrive, unless the flags say otherwise. Returns 0, 1 where a point failed, 130 where it was
// interrupted. Ranks other than 0 (`communicator`, if any) take part silently. `reopen` and `run_process` are as in
// SweepControl; the latter is for several processes, which have no `device`.
int print_sweep(const DeviceInfo& info, Device* device, const SweepRequest& request, const RunFlags& flags,
                bool is_quiet, Communicator* communicator, decltype(SweepControl::reopen) reopen = nullptr,
                decltype(SweepControl::run_process) run_process = nullptr);

}  // namespace weir::cli
