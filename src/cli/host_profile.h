// --host-profile: where the host spends its time while a workload is measured, as folded stacks or a flame graph. The
// workload is run once more for it, so that the result stays that of a run which nobody watched.
#pragma once

#include <string>

#include "run/runner.h"

namespace weir::cli {

struct HostProfile {
  Json facts;          // what the result tells of it; null where there is none
  std::string reason;  // why there is none
};

// Runs `request` again on the device with perf attached while it measures, and writes `file`: a flame graph where its
// name ends in .svg, else lines of "thread;outer;inner count". `result` is of the run before: it says how long to run.
HostProfile profile_host(Device& device, const RunRequest& request, const RunContext& context,
                         const RunControl& control, const Result& result, const std::string& file, bool is_forced);

}  // namespace weir::cli
