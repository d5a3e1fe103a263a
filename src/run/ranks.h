// What the ranks of a run tell rank 0, and what it makes of it: one result with per-rank latency, skew and stragglers.
// Knows the communicator's interface; MPI is behind it.
#pragma once

#include <vector>

#include "device/rank/communicator.h"
#include "measure/result.h"
#include "run/passes.h"
#include "step/step.h"
#include "trace/rank_skew.h"

namespace weir {

// All ranks make one and call its functions in the same order. At rank 0 the result becomes that of all ranks;
// elsewhere it stays the rank's own, and nobody keeps it.
class RankReports {
 public:
  // Rejects ranks on devices of different kinds: they would not run the same passes.
  RankReports(Communicator& ranks, const DeviceInfo& device);

  // After the timed pass and the check. At rank 0 the pass becomes that of the slowest rank of each iteration, the work
  // that of all ranks, and an output that is wrong anywhere fails the result.
  void gather_timed(Result& result, TimedPass& pass);
  // After the traced passes: arrivals at collectives, and the other ranks' warnings about their devices. `timeline` is
  // empty where there was no traced pass.
  void gather_traced(Result& result, const Step& step, const Timeline& timeline);

 private:
  Communicator& ranks_;
  ClockOffset clock_;
  std::vector<Json> members_;      // at rank 0, by rank: host, device, clock
  std::vector<Json> timed_;        // at rank 0, by rank
  std::vector<double> median_ns_;  // at rank 0, by rank; empty without latency
};

// As results carry them. `clock_error_ns`: no skew below it is claimed.
Json to_json(const RankSkew& skew, double clock_error_ns);
Json to_json(const Straggler& straggler);

}  // namespace weir
