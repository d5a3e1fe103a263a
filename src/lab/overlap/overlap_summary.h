// What one rank found about its overlap, and the document that rank 0 makes of all of them. Knows figures and
// timelines; runs nothing.
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
    std::vector<double> latency_ns, submit_ns;  // of the measured steps
    std::vector<double> losses;                 // warm-up too; empty where nothing is computed
  };
  int rank = 0;
  std::string host, device;
  ClockOffset clock;
  std::string collectives;  // what carried them
  Trained overlapped, serial;
  // By traced iteration; empty where the run was stopped before.
  std::vector<OverlapTimes> times, serial_times, alone_times, talk_times;
  std::vector<double> traced_losses;  // the pass's warm-up too
  CheckReport check;
  MemoryUse memory;
  bool is_interrupted = false;
};

Json to_json(const RankOverlap& rank);

// By iteration of a described timeline of one device.
std::vector<OverlapTimes> times_of(const Timeline& timeline);

// Why communication was exposed, over all ranks: causes with their shares, advice and worst stretches. `timelines` by
// rank, on one clock, described: ranks ran the same step, so commands have the same numbers. Times are per step, the
// mean over ranks. Sorted by time; causes that never occurred are left out.
Json causes_json(const std::vector<const Timeline*>& timelines);

// Fills everything but is_interrupted. `members` are the ranks' to_json(), `timelines` their overlapped passes on one
// clock.
void summarise_overlap(OverlapRun& run, const std::vector<Json>& members, std::vector<Timeline> timelines,
                       const BuiltRun& built, const DeviceInfo& info, const OverlapConfig& config, Communicator& ranks,
                       const RunContext& context);

}  // namespace weir
