// The traced pass of a workload under rocprofv3: starts this program again below it, reads what both wrote, joins them.
// Knows rocprofv3's command line and its format by the importer's name.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "run/outside_trace.h"

namespace weir {

inline constexpr const char* kRocprof = "rocprofv3";
// The flag of a process under rocprofv3: the file for what it notes.
inline constexpr const char* kOutsideFlag = "--child";

// Where to get it.
inline constexpr const char* kRocprofHint =
    "It comes with ROCm 6.2 and later (rocprofiler-sdk): put its bin folder into PATH.";

// The files with this extension in a folder and those below it, sorted. Profilers write one per process.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, const std::string& extension);

// What rocprofv3 is asked for; the program follows.
std::vector<std::string> rocprof_command(const std::string& rocprof, const std::string& folder);

// The pass, or why there is none (also where no command got a time); neither where this process was interrupted.
struct RocprofPass {
  std::optional<TracedPass> pass;
  std::string reason, hint;
  bool is_interrupted = false;
};

// `words`: `weir profile WORKLOAD ...` for the child, without the program's name. The child dies with this process, and
// what both wrote is removed.
RocprofPass trace_under_rocprof(const std::string& rocprof, const std::vector<std::string>& words,
                                const BuiltRun& built, const std::atomic<bool>& stop);

}  // namespace weir
