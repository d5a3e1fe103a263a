// A workload of ours that runs again and again, and its timelines as samples: where there is no driver that shows its
// queues. Knows sessions and timelines; no terminal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "lab/watch/feed.h"
#include "run/runner.h"
#include "submit/submitter.h"

namespace weir::watch {

struct Load {
  std::shared_ptr<Device> device;
  std::shared_ptr<const BuiltRun> run;
  SubmitChoice submit;
  std::string workload;
  std::vector<std::string> notes;  // that every sample shall carry
};

// For Feed: prepares the step traced, runs it iteration by iteration, and gives what the timeline says whenever a
// sample is due. Stops behind the iteration that it is at. Where time is virtual it rests between samples instead.
Feed::Body watch_device(Load load);

}  // namespace weir::watch
