// The convoy and head-of-line indices out of three cases of small kernels, as members of a document. Runs nothing.
#pragma once

#include "base/json.h"
#include "lab/queues/convoy.h"

namespace weir {

// One case: {case, latency_ns, samples_ns, ...}; latencies are null with a reason where the device has none.
Json to_json(const ConvoyRequest& request, const ConvoyMeasurement& measurement);

// Fills convoy.convoy_index (beside p99 / alone p99), convoy.head_of_line_index (behind p99 / beside p99) and the
// sentence out of convoy.cases; adds to the document's warnings and "unavailable" what limits them.
void judge_convoy(Json& document);

}  // namespace weir
