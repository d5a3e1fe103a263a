// Profiles as documents (weir.profile/2): a timed and a traced pass of a workload, and a summary of a timeline. Knows
// passes and timelines; writes no files and starts no programs.
#pragma once

#include <functional>

#include "run/passes.h"
#include "run/runner.h"

namespace weir {

struct WorkloadProfile {
  Json document = Json::object();
  Timeline timeline;                        // complete: ready for export
  Json device_properties = Json::object();  // as Kineto names them
  int rank = 0, ranks = 1;
  bool is_interrupted = false;
};

// The traced pass of a workload, by other means than the device's own.
using TracePass = std::function<TracedPass(const BuiltRun& built, int iterations)>;

// Runs the timed pass, untraced, and checks the output as `weir run` does; then `traced_iterations` traced ones. Fails
// if the timed pass does. With several ranks all call it, and each has its own timeline.
WorkloadProfile profile_workload(Device& device, const RunRequest& request, int traced_iterations,
                                 const RunContext& context, const RunControl& control, const TracePass& trace = {});

// Per device of a timeline: commands by kind, streams and queues, busy time, and the waterfall of each class of
// commands.
Json describe_devices(const Timeline& timeline);

}  // namespace weir
