// Names, lanes, calls, waits and collectives of a traced pass: what the step knows and a session's timeline does not.
// Knows steps, plans and placements; no file format.
#pragma once

#include "run/passes.h"

namespace weir {

// Fills the pass's timeline, so that it can be exported and analysed as any imported one. Spans come to lie by start,
// those without one last. Dependencies are the waits that were submitted: edges across streams that no other implies.
void describe_timeline(TracedPass& pass, const DeviceInfo& device, const Step& step, const Placement& placement,
                       const SubmitChoice& submit, const std::string& label);

}  // namespace weir
