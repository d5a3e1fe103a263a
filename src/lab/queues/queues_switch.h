// What `weir queues switch` measures for one setting of the device, and what several settings say together. Prints
// nothing and starts nothing: a setting that needs a process of its own is somebody else's to run.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lab/queues/queues_document.h"
#include "lab/queues/switch_gaps.h"

namespace weir {

struct SwitchSettings {
  std::vector<int> streams;
  SwitchRequest request;
  double kernel_ns = 10'000;  // of the kernels that the advice is for
  std::function<void(std::string_view phase, int done, int total)> progress;
};

// A weir.queues/1 document whose member "switch" has one entry in "settings".
Json measure_switch(Device& device, const SwitchSettings& settings, const RunContext& context);

// One document of several: all their settings by queue count, and where they cross. What is not of a setting is the
// first one's, but for the command line. Rejects documents of other experiments.
Json merge_switch(std::span<const Json> documents, double kernel_ns, const RunContext& context);

Json to_json(const StreamSwitch& found);

}  // namespace weir
