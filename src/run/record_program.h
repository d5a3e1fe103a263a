// Runs an unmodified program of the user with the flight recorder in it, and watches its recordings meanwhile. Knows
// the library that records by its variables only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "run/record_watch.h"

namespace weir {

struct RecordRequest {
  std::vector<std::string> command;               // of the program
  std::vector<std::filesystem::path> roots;       // record_roots()
  std::optional<std::filesystem::path> folder;    // for the recordings; otherwise one below a root
  std::uint64_t bytes = std::uint64_t{64} << 20;  // of each process
  bool is_exact = false, begins_off = false;
  bool keeps = false;     // also after an ordinary end
  bool is_quiet = false;  // only what the user asked to be told, and errors
  RecordTriggers triggers;
  std::filesystem::path metrics;  // empty: none
  std::int64_t metrics_interval_ns = 5'000'000'000;
  std::optional<std::string> cuda_injection;  // CUDA_INJECTION64_PATH of this process: another profiler
  bool has_nvtx_injection = false;            // NVTX_INJECTION64_PATH of this process: ranges go to another profiler
  std::string preload;                        // LD_PRELOAD of this process
  RecordWatch::Say say;
};

// Returns the program's exit code, or 128 + signal; 1 where it was ended because it hung. Rejects what can be seen
// before the program is started.
int record_program(const RecordRequest& request);

}  // namespace weir
