// This process's part in a job of several ranks: whether there is one, starting one, joining, watching and leaving it.
// The only place that knows launchers (mpirun, srun) and their variables.
#pragma once

#include <string>

#include "base/error.h"
#include "device/rank/communicator.h"

namespace weir::cli {

inline constexpr int kMostRanks = 4096;

// What the launcher's variables say, before MPI is touched. {0, 1} where no launcher started this.
Ranks job_ranks();

// Rank 0, or alone: the one that prints and writes files.
bool speaks();

// `--ranks` as typed, checked: the number of ranks that this run is to have. Rejects one that differs from the job's.
int rank_count(const std::string& flag);
// True where `--ranks` asks for ranks that nobody has started yet.
bool must_start_ranks(const std::string& flag);
// Runs this command again, without `--ranks`, on `count` ranks under mpirun; returns its exit code.
int start_ranks(int count);

// In a job of several ranks: opens MPI and agrees on who is who. Null where there is only this process.
Communicator* join_ranks();
// From here on a rank of this host that dies ends this one too, with a message. All ranks call it.
void watch_ranks();
// The end of a good run: waits for the others and closes MPI. Nothing where there are no ranks. Whoever uses the
// communicator must be gone.
void leave_ranks();

// The end of a bad one: says which rank failed and why, and ends all. Returns only where there are no other ranks left
// to end; then the caller reports.
void end_ranks(const Error& error);

// One line for `weir info`: which MPI, or why there is none.
std::string describe_mpi();

}  // namespace weir::cli
