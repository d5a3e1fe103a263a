// What must hold of any device, as outcomes: results, order and times of a step that was run. Knows no case.
#pragma once

#include <string>

#include "lab/conformance/conformance.h"
#include "lab/conformance/steps.h"

namespace weir::conformance {

// Where two contents differ in a bit; empty: nowhere.
std::string difference_of(const Step& step, const Contents& got, const Contents& expected);

// What is wrong with what a device left of a step that ran once and writes each byte once: every command is judged by
// its kernel's reference on the inputs that the device had for it. Empty: nothing.
std::string complaint_about(const Step& step, const Contents& got);

// Both, on the device and on cpu, within what the kernel's arithmetic allows.
Outcome same_as_reference(Subject& subject, const Step& step);

// Runs the step; the same buffers as on the host, bit for bit. Where the device computes nothing but has a clock, the
// timeline must follow the edges; where it has not, the step must run.
Outcome same_buffers(Subject& subject, const Step& step, const Placement& placement, const RunChoice& choice);

struct TimelineFacts {
  bool is_pipelined = false;
  std::size_t iterations = 1;  // that the timeline must hold at least
  bool is_exact = false;       // all times are of one clock, and none is rounded
};
// What is known of a device's timelines: those of cpu and of virtual time are exact.
TimelineFacts facts_of(const Subject& subject, const RunChoice& choice);
// What is wrong with the times of a step: commands that are missing or end before they start, streams out of order,
// edges that time runs against. Empty: nothing.
std::string timeline_complaint(const Step& step, const Placement& placement, const Timeline& timeline,
                               const TimelineFacts& facts);

// Traces the step: the result is right, and so is the timeline; a device that has no times must say why.
Outcome sane_timeline(Subject& subject, const Step& step, const Placement& placement, const RunChoice& choice);

// More iterations in flight than any ring of events holds: all have their times, in order, and the result is right.
Outcome many_iterations(Subject& subject, const std::string& submit, int iterations);

}  // namespace weir::conformance
