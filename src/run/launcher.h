// Runs a command on several ranks under mpirun and supervises them, on this host and through mpirun on others. Knows no
// MPI and no run.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/process.h"

namespace weir {

struct RankLaunch {
  int ranks = 1;
  std::vector<std::string> command;  // of each rank: this program and its arguments
  bool is_open_mpi = false;          // its mpirun has flags of its own
  Variables variables;               // set for mpirun, in addition to this process's environment
  // For ranks to finish their iteration, check and save after the first interrupt, before all of them are ended.
  std::int64_t patience_ns = 60'000'000'000;
};

// Returns the exit code of the ranks; fails where mpirun did not run them. The first of `interrupts` asks ranks to stop
// after their iteration, the second, or the end of its patience, ends everything.
int launch_ranks(const RankLaunch& launch, const std::atomic<int>& interrupts);

}  // namespace weir
