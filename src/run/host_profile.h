// Where the host spends its time while something is measured, as folded stacks. It is run again for that, so that the
// result comes from a run without profiling. Writes no file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/folded_stacks.h"
#include "run/runner.h"

namespace weir {

struct HostProfile {
  std::vector<FoldedStack> stacks;  // empty where there is no profile
  Json facts;                       // for the result; null where there is no profile
  std::string reason;               // why there is none
};

inline constexpr int kHostProfileHz = 997;  // not 1000, which would see events of every millisecond always or never

// Runs `request` again on the device with perf attached while it measures. `result` is from the first run and
// determines how long to run; `file` is where the caller writes the stacks, for the facts.
HostProfile profile_host(Device& device, const RunRequest& request, const RunContext& context,
                         const RunControl& control, const Result& result, const std::string& file);

// The same for anything that this process can do again: `work` runs once under perf.
HostProfile profile_host(const std::function<void()>& work, const std::string& file);

}  // namespace weir
