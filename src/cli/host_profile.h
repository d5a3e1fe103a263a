// --host-profile: where the host spends its time while a workload is measured, as folded stacks or a flame graph. The
// workload is run again for it, so that the result comes from a run without profiling.
#pragma once

#include <string>

#include "run/runner.h"

namespace weir::cli {

struct HostProfile {
  Json facts;          // for the result; null where there is none
  std::string reason;  // why there is none
};

// Runs `request` again on the device with perf attached while it measures, and writes `file`: a flame graph where its
// name ends in .svg, else lines of "thread;outer;inner count". `result` is from the first run and determines how long
// to run.
HostProfile profile_host(Device& device, const RunRequest& request, const RunContext& context,
                         const RunControl& control, const Result& result, const std::string& file, bool is_forced);

}  // namespace weir::cli
