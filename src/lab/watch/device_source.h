// Runs one of Weir's workloads repeatedly and turns its timelines into samples, for machines whose driver does not show
// queues. Knows sessions and timelines; no terminal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "lab/watch/feed.h"
#include "run/runner.h"

namespace weir::watch {

struct Load {
  std::shared_ptr<Device> device;
  std::shared_ptr<const BuiltRun> run;
  std::string workload;
  std::vector<std::string> notes;  // added to every sample
};

// For Feed: prepares the step with tracing, runs it iteration by iteration, and publishes a sample from the timeline
// whenever one is due. Stops after the current iteration. On devices with virtual time it sleeps between samples.
Feed::Body watch_device(Load load);

}  // namespace weir::watch
