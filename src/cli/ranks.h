// This process's part in a job of several ranks: detecting, starting, joining, watching and leaving it. The only place
// that knows the variables of launchers (mpirun, srun); run/launcher.h starts mpirun.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "device/rank/communicator.h"

namespace weir::cli {

inline constexpr int kMaxRanks = 4096;

// From the launcher's variables, before MPI is touched. {0, 1} where no launcher started this process.
Ranks job_ranks();

// True for rank 0, or without ranks: the process that prints and writes files.
bool is_first_rank();

// `--ranks` as typed, checked: the number of ranks for this run. Rejects a number that differs from the job's.
int rank_count(const std::string& flag);
// The same for a job without a launcher: by default one rank for each GPU of the kind that `device` names ("auto",
// "hip"), and one where it names a single device or no GPU. With a note: fewer where `batch` does not divide
// by their number, and one where ranks cannot be started or the Slurm job has several nodes.
int default_rank_count(const std::string& flag, const std::string& device, std::int64_t batch = 0);

// True where `--ranks` requests ranks that have not been started yet.
bool must_start_ranks(const std::string& flag);
// Runs this command again, without `--ranks`, on `count` ranks under mpirun; returns its exit code.
int start_ranks(int count);

// Whether this process can reach the others by MPI: srun without a plugin for it leaves each alone, and this build may
// have no MPI.
bool has_mpi_launcher();
// In a job of several ranks: opens MPI and agrees on rank numbers. Null where there is only this process.
Communicator* join_ranks();
// From here on, if a rank on this host dies, this one ends too, with a message. All ranks call it.
void watch_ranks();
// From here on a rank that waits for the others for so long reports it (run/watched_communicator.h). 0: not any more.
void watch_waits(std::int64_t timeout_ns, std::function<void(const std::string&)> on_hang);
// Ends a successful run: waits for the others and closes MPI. Does nothing without ranks. All users of the communicator
// must be gone.
void leave_ranks();

// Ends a failed run: reports which rank failed and why, and ends all. Returns only where there are no other ranks left
// to end; the caller then reports.
void end_ranks(const Error& error);

// One line for `weir info`: which MPI, or why there is none.
std::string describe_mpi();

}  // namespace weir::cli
