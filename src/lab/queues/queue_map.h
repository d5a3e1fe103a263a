// Which stream sits on which hardware queue, found three ways and held against each other: the runtime's own ids, the
// probe, and the timeline of a step. Measures; prints nothing.
#pragma once

#include "lab/queues/probe.h"
#include "lab/queues/queues_document.h"

namespace weir {

struct MapRequest {
  int streams = 40;
  double confidence = 0.999;
  RunRequest step;  // whose timeline is looked at; no workload: a step of the lab's own
};

// How many streams the probe opens to map that many: what is not shared cannot be counted.
int probed_streams(int streams);

// The document of `weir queues map`.
Json map_queues(Device& device, const MapRequest& request, const RunContext& context, const RunControl& control);

Json to_json(const QueueProbe& probe);
// To the document's warnings: others on the device, and a clock too coarse for gaps, as the probe's baseline shows
// them.
void warn_about_others(Json& document, Device& device, const QueueProbe& probe);

}  // namespace weir
