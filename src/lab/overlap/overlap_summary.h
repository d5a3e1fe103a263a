// The results of one rank, and the document that rank 0 makes of all ranks' results. Knows figures and timelines; runs
// nothing.
#pragma once

#include <string>
#include <vector>

#include "device/rank/communicator.h"
#include "lab/overlap/overlap.h"
#include "run/check.h"
#include "trace/analyse/overlap_times.h"

namespace weir {

struct RankOverlap {
  struct Trained {
    std::vector<double> latency_ns, submit_ns;  // one entry per measured step
    std::vector<double> losses;                 // includes warm-up; empty if the device computes nothing
  };
  int rank = 0;
  std::string host, device;
  RankClockOffset clock;
  std::string collectives;  // the implementation that ran them
  Trained overlapped, serial;
  // By traced iteration; empty if the run was stopped earlier.
  std::vector<OverlapTimes> times, serial_times, alone_times, talk_times;
  std::vector<double> traced_losses;  // includes the pass's warm-up
  CheckReport check;
  MemoryUse memory;
  bool is_interrupted = false;
};

Json to_json(const RankOverlap& rank);

// The summary of a list of step times, with the list; null for an empty one.
Json step_json(const std::vector<double>& samples);

// The times of each iteration of a described timeline of one device.
std::vector<OverlapTimes> times_of(const Timeline& timeline);

// Explains why communication was exposed, over all ranks: causes with their shares, advice and worst stretches.
// `timelines` are by rank, on one clock, and described; ranks run the same step, so commands have the same numbers.
// Times are per step, the mean over ranks. Causes are sorted by time; those that never occurred are left out.
Json causes_json(const std::vector<const Timeline*>& timelines);

// Fills everything except is_interrupted. `members` are the ranks' to_json(), `timelines` their overlapped passes on
// one clock.
void summarise_overlap(OverlapRun& run, const std::vector<Json>& members, std::vector<Timeline> timelines,
                       const BuiltRun& built, const DeviceInfo& info, const OverlapConfig& config, Communicator& ranks,
                       const RunContext& context);

}  // namespace weir
