// Measures one setting of the device for `weir queues switch`, and derives from several settings where more queues stop
// paying off. Prints nothing and starts nothing: the caller runs settings that need their own process.
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
  double kernel_ns = 10'000;  // duration of the kernels that the advice is for
  std::function<void(std::string_view phase, int done, int total)> progress;
};

// A weir.queues/2 document whose member "switch" has one entry in "settings".
Json measure_switch(Device& device, const SwitchSettings& settings, const RunContext& context);

// Merges several documents: all their settings by queue count, and where they cross. Everything else comes from the
// first document, except the command line. Rejects documents of other experiments.
Json merge_switch(std::span<const Json> documents, double kernel_ns, const RunContext& context);

Json to_json(const StreamSwitch& found);

// The cost of a command with this many queues: a hop, and the share of a kernel's duration that it waits unnecessarily.
struct QueueCosts {
  int queues = 0;
  double hop_ns = 0;
  double lost_share = 0;
  double cost_ns(double kernel_ns) const { return hop_ns + lost_share * kernel_ns; }
};

// `queues` is the best count for kernels of these durations.
struct BestRange {
  int queues = 0;
  double from_ns = 0;
  std::optional<double> to_ns;  // nothing: all longer ones
};

// From the shortest kernels to the longest, without gaps. Empty without costs; fewer queues win if costs are equal.
std::vector<BestRange> best_ranges(std::span<const QueueCosts> costs);

}  // namespace weir
