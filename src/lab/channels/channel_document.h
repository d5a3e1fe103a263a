// The document of `weir channel`, weir.channel/2: all measurements, their summaries, and comparisons. Its form is in
// docs/schema/weir.channel.2.json.
#pragma once

#include <optional>
#include <vector>

#include "lab/channels/channel_calibration.h"
#include "lab/channels/channel_compare.h"
#include "lab/channels/channel_results.h"
#include "run/runner.h"

namespace weir {

// The outcome of one process of the run.
struct ChannelProcess {
  int process = 0;         // several have the same number if one had to be continued in another
  std::uint64_t seed = 0;  // of its order
  std::size_t benchmarks = 0;
  double wall_s = 0;
  std::string ended;  // done, timed_out, crashed, interrupted
};

struct ChannelGroup {
  std::string name, summary, seed;
};

struct ChannelReport {
  ChannelRun run;
  std::vector<ChannelGroup> groups;  // in the order of the list
  std::vector<ChannelProcess> processes;
  std::size_t capacity_asked = 0;
  std::optional<ChannelComparison> comparison;
  std::optional<ChannelCalibration> calibration;
  Json host_profile;  // facts about it; null where there is none
  std::vector<Warning> warnings;
};

Json channel_document(const ChannelReport& report, const RunContext& context);

}  // namespace weir
