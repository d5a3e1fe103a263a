// Profiles as documents (weir.profile/1): a timed and a traced pass of a workload, and what a timeline says at a
// glance. Knows passes and timelines; writes no files and starts no programs.
#pragma once

#include "run/passes.h"
#include "run/runner.h"

namespace weir {

inline constexpr const char* kProfileSchema = "weir.profile/1";

struct WorkloadProfile {
  Json document = Json::object();
  Timeline timeline;                        // described: ready to be exported
  Json device_properties = Json::object();  // as Kineto names them
  int rank = 0, ranks = 1;
  bool is_interrupted = false;
};

// The timed pass, untraced, with the output checked as `weir run` does; then `traced_iterations` traced ones. Fails
// where the timed pass does. With several ranks all call it, and each has its own timeline.
WorkloadProfile profile_workload(Device& device, const RunRequest& request, int traced_iterations,
                                 const RunContext& context, const RunControl& control);

// Per device of a timeline: how many commands of which kind on how many streams and queues, how long it was busy, and
// the waterfall of each class of commands.
Json describe_devices(const Timeline& timeline);

}  // namespace weir
