// The results of one rank, and the document that rank 0 makes of all ranks' results. Knows figures and timelines; runs
// nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/rank/communicator.h"
#include "lab/overlap/overlap.h"
#include "run/check.h"
#include "trace/analyse/exposed_causes.h"
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

struct RankCauses {
  ExposedCauses found;
  std::size_t iterations = 0;
};
// Explains why communication was exposed, rank by rank. `timelines` are by rank, on one clock, and described; ranks run
// the same step, so commands have the same numbers.
std::vector<RankCauses> causes_by_rank(const std::vector<const Timeline*>& timelines);
// The same over all ranks: causes with their shares, advice and worst stretches. Times are per step, the mean over
// ranks. Causes are sorted by time; those that never occurred are left out.
Json causes_json(const std::vector<const Timeline*>& timelines, const std::vector<RankCauses>& ranks);

// The best possible overlap of a rank, per step; empty where its passes were not traced.
struct OverlapBound {
  std::optional<double> least_exposed_ns, best_efficiency;
};
// Everything but communication runs beside it, except where the next command waits for the collective itself: that time
// is exposed however well the rest overlaps. `communication_ns` and `dependency_ns` are of the overlapped pass.
OverlapBound overlap_bound(double compute_alone_ns, double communication_alone_ns, double communication_ns,
                           double dependency_ns);

// Fills everything except is_interrupted. `members` are the ranks' to_json(), `timelines` their overlapped passes on
// one clock.
void summarise_overlap(OverlapRun& run, const std::vector<Json>& members, std::vector<Timeline> timelines,
                       const BuiltRun& built, const DeviceInfo& info, const OverlapConfig& config, Communicator& ranks,
                       const RunContext& context);

}  // namespace weir
