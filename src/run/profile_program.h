// Profiles an unmodified program of the user: with Weir's injection library on NVIDIA GPUs, with rocprofv3 on AMD GPUs.
// Starts it, waits for it, imports what was captured. Knows trace formats only by the importers' names.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/profile_output.h"

namespace weir {

struct ProgramRequest {
  std::vector<std::string> command;           // of the program
  std::string profiler = "auto";              // cupti or rocprofv3
  std::optional<std::string> rocprof;         // where rocprofv3 is, if it is there
  std::optional<std::string> cuda_injection;  // CUDA_INJECTION64_PATH of this process: another profiler
  std::optional<std::string> nvtx_injection;  // NVTX_INJECTION64_PATH of this process
  std::int64_t limit_mib = 4096;              // of records, per process
  bool has_latency = false, has_whole_graphs = false;
  ProfileOutput output;
  std::vector<std::string> command_line;  // of this process, for the document
  // Called once, when the program has ended: from then on interrupts are for this process, and set the flag.
  std::function<const std::atomic<bool>&()> stop;
};

struct ProgramProfile {
  Json document = Json::object();
  int code = 0;  // the program's own, or 128 + signal
  bool has_timeline = false;
  bool is_interrupted = false;  // while its records were read or written; there is then no document
};

// Rejects a profiler that is not there. Standard input, output and errors belong to the program; signals sent to this
// process are forwarded to it.
ProgramProfile profile_program(const ProgramRequest& request);

}  // namespace weir
