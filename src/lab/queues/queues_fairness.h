// The experiment of `weir queues fairness` and its document. Prints nothing.
#pragma once

#include "lab/queues/fairness_probe.h"
#include "lab/queues/queues_document.h"

namespace weir {

// A weir.queues/1 document with the member "fairness".
Json measure_fairness_document(Device& device, const FairnessRequest& request, const RunContext& context);

Json to_json(const FairnessProbe& probe);

}  // namespace weir
