// The traced pass of a workload whose profiler runs around the process (rocprofv3): what the process itself notes of
// its commands, how that travels to the process that started it, and the join with the profiler's records. Knows
// timelines and clocks; starts nothing and reads no profiler's format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/clock_map.h"
#include "run/passes.h"

namespace weir {

struct OutsidePass {
  // Each span of the device has the call that submitted it (with the kernel's number of the thread), and no times of
  // the device.
  TracedPass pass;
  std::vector<ClockFix> fixes;  // of the profiler's clock, before and after the pass; empty with a reason
  std::string no_clock;
};

// Runs the pass in a process that rocprofv3 has started, on a device whose sessions keep the host's times alone.
OutsidePass run_outside_pass(Device& device, const BuiltRun& built, int iterations, const RunControl& control,
                             std::span<const std::string> roles);

Json to_json(const OutsidePass& outside);
// Rejects what is not such a document of this step.
OutsidePass outside_pass(const Json& document, const Step& step, const Placement& placement);

// Whether the calls in these records are this pass's, by their threads.
bool has_calls_of(const Timeline& records, const OutsidePass& outside);

// Whether any command of the device has a time.
bool has_device_times(const Timeline& timeline, const Step& step);

// Gives the pass's commands the times and hardware queues of the profiler's records. A command's records are those of
// the calls that its thread made while it submitted the command, however many they are. Commands whose records are
// missing keep no times, and the timeline's source says how many and why.
void join_records(OutsidePass& outside, const Timeline& records, const Step& step, const std::string& profiler);

}  // namespace weir
