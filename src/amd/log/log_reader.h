// Reads the runtime's log (AMD_LOG_LEVEL) of any size, plain or .gz, in one pass and in bounded memory, and reports its
// events to a sink. Counts unreadable lines by reason and continues. Knows the text of ROCm 5 to 7, but not the history
// of queues.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "amd/log/log_sink.h"

namespace weir::amd {

struct UnreadLines {
  std::string reason;
  std::uint64_t count = 0, first_line = 0;
};

// Facts about the file itself from one pass.
struct LogReading {
  std::uint64_t bytes = 0;  // decompressed
  std::uint64_t lines = 0;
  std::uint64_t records = 0;      // lines that the runtime wrote
  std::uint64_t glued = 0;        // records that follow program output on the same line
  std::uint64_t other_lines = 0;  // program output, or continuation lines of the runtime; these are ignored
  std::uint64_t without_pid = 0;  // records of level 3 and below, related only by their order in the file
  std::int64_t first_ns = INT64_MIN, last_ns = INT64_MIN;  // earliest and latest time of a record
  int highest_level = 0;                                   // of a record
  std::uint64_t runtimes = 0;            // "Initializing" lines: programs that wrote to this file, if logged
  std::string runtime_version;           // "HIP Version: ..." of the first program; empty if not logged
  std::optional<int> most_per_priority;  // "maximum per priority is: 4", GPU_MAX_HW_QUEUES
  std::string problem;                   // why decompression ended early (.gz); empty if it did not
  std::vector<UnreadLines> unread;
};

// Points to a flag that ends a pass early; may be null.
inline bool is_stopped(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

struct LogOptions {
  unsigned threads = 0;                     // scanner threads beside the caller's; 0: automatic
  const std::atomic<bool>* stop = nullptr;  // read between blocks: ends the pass early
};

// Rejects a file that is missing, empty, binary, or without any record of the runtime, and names the settings to use.
LogReading read_log(const std::filesystem::path& path, LogSink& sink, const LogOptions& options = {});
// The same for text in memory (gzip too); `name` is for messages.
LogReading read_log_text(std::string_view text, const std::string& name, LogSink& sink, const LogOptions& options = {});

}  // namespace weir::amd
