// Turns passes into metrics: every number of a result, or the reason why it is missing.
#pragma once

#include <string>

#include "measure/result.h"
#include "run/passes.h"
#include "step/workload/workload.h"

namespace weir {

// Latency, throughput, host cost, memory, energy, and warnings about noise, drift and throttling.
// Work and commands per iteration are the result's (all ranks), the host's cost is this rank's.
// A device on which nothing runs has no throughput, only commands per second.
void add_timed_metrics(Result& result, const TimedPass& pass, const Step& step, bool runs);

// How the session's regions were compiled, for a step that has any.
void add_compilation(Result& result, const Step& step, const Session& session, const DeviceInfo& info);

// Host cost of the same step, placement and submitter on the null device: the floor under host_ns_per_command.
// Not for devices in virtual time: the floor is this machine's.
inline constexpr const char* kNoFloor =
    "the device's time is virtual: this machine's cost of submitting says nothing about it";
double floor_ns_per_command(const Step& step, const Placement& placement, const SubmitChoice& submit);

// Concurrency, fairness, queue switch and convoy index, from separate traced passes. Returns the step's timeline.
Timeline add_traced_metrics(Result& result, Device& device, const Workload& workload, const Step& step,
                            const Placement& placement, const SubmitChoice& submit, const RunControl& control);

// Marks all metrics of a traced pass as not available.
void note_untraced(Result& result, const std::string& reason);

}  // namespace weir
