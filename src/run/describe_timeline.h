// Adds to a traced pass what only the step knows: names, lanes, calls, waits and collectives. Knows steps, plans and
// placements; no file format.
#pragma once

#include "run/passes.h"

namespace weir {

// Completes the pass's timeline, so that it can be exported and analysed like an imported one. Sorts spans by start,
// those without one last. Dependencies are the submitted waits: edges across streams that no other implies.
void describe_timeline(TracedPass& pass, const DeviceInfo& device, const Step& step, const Placement& placement,
                       const SubmitChoice& submit, const std::string& label);

}  // namespace weir
