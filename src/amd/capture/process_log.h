// The log that ROCm writes in a process that runs already, found by that process's own variables. Reads it through the
// process's root, so that a container's path is right, and nothing in there can lead to a file of ours.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.h"

namespace weir::amd {

struct ProcessLog {
  pid_t pid = 0;
  std::string path;  // in the process
  Descriptor file;   // a regular file
};

struct ProcessLogs {
  std::vector<ProcessLog> logs;  // each file once, however many processes write to it
  std::string reason, hint;      // why there is none, or not all
};

// `proc`: "/proc".
ProcessLogs open_process_logs(const std::string& proc, const std::vector<pid_t>& processes);

}  // namespace weir::amd
