// Reads the runtime's log (AMD_LOG_LEVEL) of any size, plain or .gz, in one pass and in bounded memory, and tells a
// sink what it holds. Counts what it could not read by reason and goes on. Knows the text of ROCm 5 to 7; no queue's
// history.
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

// What a pass over a file says of the file itself.
struct LogReading {
  std::uint64_t bytes = 0;  // unpacked
  std::uint64_t lines = 0;
  std::uint64_t records = 0;      // lines that the runtime wrote
  std::uint64_t glued = 0;        // of those, behind a program's own output on the same line
  std::uint64_t other_lines = 0;  // of the program, or continued messages of the runtime: nothing is read from them
  std::uint64_t without_pid = 0;  // records of level 3 and below: joined by their order in the file
  std::int64_t first_ns = INT64_MIN, last_ns = INT64_MIN;  // earliest and latest time of a record
  int highest_level = 0;                                   // of a record
  std::uint64_t runtimes = 0;   // "Initializing" of the runtime: programs that wrote into this file, where logged
  std::string runtime_version;  // "HIP Version: ..." of the first; empty where it is not logged
  std::optional<int> most_per_priority;  // "maximum per priority is: 4", GPU_MAX_HW_QUEUES
  std::string problem;                   // why the bytes ended before they should have (.gz); empty where they did not
  std::vector<UnreadLines> unread;
};

// Of a flag that ends a pass early; it may be null.
inline bool is_stopped(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

struct LogOptions {
  unsigned threads = 0;                     // that look for lines beside the caller's; 0: as many as pay
  const std::atomic<bool>* stop = nullptr;  // read between blocks: ends the pass early
};

// Rejects a file that is missing, empty, binary, or holds no record of the runtime, and says what to set.
LogReading read_log(const std::filesystem::path& path, LogSink& sink, const LogOptions& options = {});
// The same of a text in memory (gzip too); `name` is for messages.
LogReading read_log_text(std::string_view text, const std::string& name, LogSink& sink, const LogOptions& options = {});

}  // namespace weir::amd
