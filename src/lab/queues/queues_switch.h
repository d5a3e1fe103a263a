// What `weir queues switch` measures for one setting of the device, and what several settings say together: where more
// queues stop paying. Prints nothing and starts nothing: a setting that needs a process of its own is somebody else's
// to run.
#pragma once

#include <functional>
#include <optional>
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

// What a command costs with this many queues: a hop, and a share of a kernel's duration that it waits in vain.
struct QueueCosts {
  int queues = 0;
  double hop_ns = 0;
  double lost_share = 0;
  double cost_ns(double kernel_ns) const { return hop_ns + lost_share * kernel_ns; }
};

// Kernels of these durations are best off with `queues`.
struct BestRange {
  int queues = 0;
  double from_ns = 0;
  std::optional<double> to_ns;  // nothing: all that are longer
};

// From the shortest kernels to the longest, without gaps. Empty for no costs; fewer queues win where costs are equal.
std::vector<BestRange> best_ranges(std::span<const QueueCosts> costs);

}  // namespace weir
