// Finds which stream uses which hardware queue in three ways and compares them: the runtime's own ids, the probe, and
// the timeline of a step. Measures; prints nothing.
#pragma once

#include "lab/queues/probe.h"
#include "lab/queues/queues_document.h"

namespace weir {

struct MapRequest {
  int streams = 40;
  double confidence = 0.999;
  RunRequest step;  // the step to trace; without a workload: the lab's own step
};

// How many streams the probe opens to map this many: queues that are not shared cannot be counted.
int probed_streams(int streams);

// The document of `weir queues map`.
Json map_queues(Device& device, const MapRequest& request, const RunContext& context, const RunControl& control);

Json to_json(const QueueProbe& probe);
// Adds warnings to the document about other users of the device and a clock too coarse for gaps, according to the
// probe's baseline.
void warn_about_others(Json& document, Device& device, const QueueProbe& probe);

}  // namespace weir
