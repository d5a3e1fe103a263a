// The process that keeps NVIDIA's MPS control process for a daemon: starts it, restarts it when it dies, and ends it
// and removes its folders when the daemon is gone, however that ended. Knows no client of the scheduler.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace weir::scheduler {

inline constexpr const char* kMpsPipeVariable = "CUDA_MPS_PIPE_DIRECTORY";
inline constexpr const char* kMpsLogVariable = "CUDA_MPS_LOG_DIRECTORY";
inline constexpr const char* kMpsProgram = "nvidia-cuda-mps-control";
// The kernel keeps 15 characters of a program's name: those of the control process and of its server are the same.
inline constexpr const char* kMpsProcessName = "nvidia-cuda-mps";

struct MpsPlaces {
  std::string program;    // its path
  std::string root;       // the folder to remove in the end, with all that is in it
  std::string pipe, log;  // folders
  std::string output;     // the file in `log` that has what the processes print
};

// What the guardian reports, one packet each.
struct MpsEvent {
  // `lingers`: the daemon is gone, but programs still work in the MPS, and lose nothing before they end.
  enum class Kind : std::uint32_t { ready = 1, ended = 2, given_up = 3, lingers = 4 };
  Kind kind = Kind::ended;
  std::int32_t pid = 0;     // of the control process
  std::int32_t status = 0;  // `ended`: as waitpid() has it
};

struct MpsGuardian {
  pid_t pid = -1;
  Descriptor process;  // its pidfd; none on kernels before 5.3
  Descriptor channel;  // MpsEvents; closing it ends the guardian, and so does the end of this process
};

// Forks. `lock`: held open as long as the guardian lives; `output`: for what the processes print. Throws where there
// are no processes or descriptors left.
MpsGuardian start_mps_guardian(const MpsPlaces& places, int lock, int output);

// Ends processes of an MPS whose guardian is gone: those of this user that have that name and that pipe folder. Waits
// for two seconds at most; false: some are still there.
bool end_stray_mps(const std::string& pipe_folder);

}  // namespace weir::scheduler
