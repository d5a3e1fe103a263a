// Checks that must hold for any device, as outcomes: results, order and times of a step that was run. Knows no case.
#pragma once

#include <string>

#include "lab/conformance/conformance.h"
#include "lab/conformance/steps.h"

namespace weir::conformance {

// Where two contents differ in a bit; empty if they are equal.
std::string difference_of(const Step& step, const Contents& got, const Contents& expected);

// What is wrong with a device's results for a step that ran once and writes each byte once: every command is checked
// against its kernel's reference on the inputs that the device had for it. Empty if nothing is.
std::string output_problem(const Step& step, const Contents& got);

// Runs the step on the device and on cpu; both must match the reference within what the kernel's arithmetic allows.
CaseOutcome same_as_reference(Subject& subject, const Step& step);

// Runs the step; the buffers must be the same as on the host, bit for bit. If the device computes nothing but has a
// clock, the timeline must follow the edges; without a clock, the step must run.
CaseOutcome same_buffers(Subject& subject, const Step& step, const Placement& placement, const RunChoice& choice);

struct TimelineFacts {
  bool is_pipelined = false;
  std::size_t iterations = 1;  // minimum number in the timeline
  bool is_exact = false;       // all times are on one clock, and none is rounded
};
// What is known about a device's timelines: those of cpu and of virtual time are exact.
TimelineFacts facts_of(const Subject& subject, const RunChoice& choice);
// What is wrong with the times of a step: commands that are missing or end before they start, streams out of order,
// edges that times contradict. Empty if nothing is.
std::string timeline_problem(const Step& step, const Placement& placement, const Timeline& timeline,
                             const TimelineFacts& facts);

// Traces the step: the result and the timeline must be right; a device without times must give the reason.
CaseOutcome consistent_timeline(Subject& subject, const Step& step, const Placement& placement,
                                const RunChoice& choice);

// More iterations in flight than any ring of events holds: all must have times, in order, and the result must be right.
CaseOutcome many_iterations(Subject& subject, const std::string& submit, int iterations);

}  // namespace weir::conformance
