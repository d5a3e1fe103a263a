// What the ranks of a run send to rank 0, which combines it into one result with per-rank latency, skew and stragglers.
// Knows the communicator's interface, not MPI.
#pragma once

#include <vector>

#include "device/rank/communicator.h"
#include "measure/result.h"
#include "run/passes.h"
#include "step/step.h"
#include "trace/rank_skew.h"

namespace weir {

// All ranks create one and call its functions in the same order. On rank 0 the result becomes that of all ranks;
// elsewhere it stays the rank's own and is discarded.
class RankReports {
 public:
  // Rejects ranks on devices of different kinds: they would not run the same passes.
  RankReports(Communicator& ranks, const DeviceInfo& device);

  // Call after the timed pass and the check. On rank 0 each iteration's times become those of the slowest rank, the
  // work that of all ranks, and a wrong output on any rank fails the result.
  void gather_timed(Result& result, TimedPass& pass);
  // Call after the traced passes: gathers arrivals at collectives, and the other ranks' warnings about their devices.
  // `timeline` is empty if there was no traced pass.
  void gather_traced(Result& result, const Step& step, const Timeline& timeline);

 private:
  Communicator& ranks_;
  RankClockOffset clock_;
  std::vector<Json> members_;      // on rank 0, by rank: host, device, clock
  std::vector<Json> timed_;        // on rank 0, by rank
  std::vector<double> median_ns_;  // on rank 0, by rank; empty without latency
};

// As in results. `clock_error_ns`: smaller skews are not claimed.
Json to_json(const RankSkew& skew, double clock_error_ns);
Json to_json(const Straggler& straggler);

}  // namespace weir
