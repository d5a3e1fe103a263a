// Steps and expectations that more than one group uses: data that goes to the host and back, and what a device must
// reject.
#pragma once

#include <string_view>

#include "lab/conformance/conformance.h"

namespace weir::conformance {

// To the host, changed there, and back, on every stream; with cuts the host functions are between graphs.
Step round_trip_step(bool has_cuts);

// prepare() must reject the step as bad input, with a message that contains `word` and a hint.
CaseOutcome rejected(Subject& subject, const Step& step, const SessionOptions& options, std::string_view word);

}  // namespace weir::conformance
