// Finds the lines about queues in a block of log text and counts the others; most lines are skipped after a look at a
// few bytes. Knows the kind of a line by its first words, but not what lines mean together.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "amd/log/log_line.h"

namespace weir::amd {

enum class LineKind : std::uint8_t {
  packet,    // SWq=0x.., HWq=0x.., id=1, Dispatch Header = ...
  command,   // Command (KernelExecution) enqueued: ...
  kernel,    // ShaderName : ..., Graph shader name : ...
  asked,     // Number of allocated hardware queues ...
  created,   // Created SWq=.. to map on HWq=.., created hardware queue ..
  shared,    // acquireQueue refCount, Selected queue refCount, releaseQueue refCount
  deleted,   // Deleting hardware queue ...
  copy,      // HSA Async Copy ..., HSA Copy copy_engine=...
  call,      // hipStreamCreate ( ...
  returned,  // hipStreamCreate: Returned ...
  error,     // any message of level 0, 1 or 2
  runtime,   // Initializing HSA stack / Initalizing runtime stack
  version,   // HIP Version: ...
  restart,   // not a line: the time goes back at the line that follows
};

struct FoundLine {
  std::uint64_t time_us = kNoTimeUs;
  std::uint32_t at = 0, size = 0;  // of the record in its block
  std::uint32_t line = 0;          // in its block, from 0
  std::uint16_t process_at = 0;    // of "[pid:"
  std::uint16_t process_size = 0;  // 0 if the line has none
  std::uint32_t message_at = 0;    // after color codes
  LineKind kind = LineKind::packet;
  std::uint8_t level = 0;
  static constexpr std::uint64_t kNoTimeUs = UINT64_MAX;
};

struct FoundCalls {
  const std::string* name = nullptr;  // from the scanner's table
  std::uint32_t begun = 0, returned = 0, failed = 0;
  std::string first_status;
};

enum class Unread : std::uint8_t { too_long, hole, too_many_names, count };

struct ScannedBlock {
  std::vector<FoundLine> found;
  std::vector<FoundCalls> calls;
  std::uint64_t lines = 0, records = 0, glued = 0, other_lines = 0, without_pid = 0;
  std::uint64_t first_us = FoundLine::kNoTimeUs, last_us = 0;  // of the first and the last record that has a time
  std::uint64_t min_us = FoundLine::kNoTimeUs, max_us = 0;
  int highest_level = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(Unread::count)> unread{};
  std::array<std::uint64_t, static_cast<std::size_t>(Unread::count)> first_unread{};  // line in the block

  void clear();
};

// Longer lines are not read; the runtime cuts its messages at 4096 bytes.
inline constexpr std::size_t kLongestLine = 65'536;
// If the time goes back by more than this between two records, another run begins; threads are out of order by much
// less.
inline constexpr std::uint64_t kRestartUs = 1'000'000;
// A block's buffer has this many bytes before and after its text, because words are loaded across its ends.
inline constexpr std::size_t kMargin = 64;

// Used by one thread; its names live as long as it does.
class LineScanner {
 public:
  explicit LineScanner(bool wants_calls);
  // `text` contains whole lines with their line ends, with kMargin readable bytes on both sides.
  void scan(std::string_view text, ScannedBlock& out);

 private:
  // Positions of the parts of the last record; the next record usually has them at the same places.
  struct Layout {
    std::uint32_t us_at = 0, digits = 0, digits_at = 0, message_at = 0;
    std::uint32_t us = 0, first = 0, first_mask = 0;  // texts, as words
    std::uint16_t bracket = 0, bracket_mask = 0;
    char mark = 0;  // first character of the process, or a blank
    bool has_process = false;
    std::uint64_t last_high = 0, last_highest = 0, base_us = 0;  // the last time without its last three digits
  };
  struct Record {
    const char* line;
    std::size_t size;
    std::uint64_t time_us;
    std::uint32_t process_at, message_at;
    bool has_process;
  };
  enum class Call : std::uint8_t { none, begun, returned };  // none: counted, and no longer needed
  struct Name {
    std::string text;
    bool is_ordered = false;  // names the stream in use, or changes one
    std::uint32_t begun = 0, returned = 0, failed = 0;
    std::string first_status;
  };

  bool wants_calls_;
  Layout layout_;
  std::vector<std::uint16_t> ends_;
  std::deque<Name> names_;
  std::unordered_map<std::string_view, Name*> by_text_;
  struct Recent {
    Name* name = nullptr;
    std::size_t length = 0;
    std::array<char, 48> text{};
  };
  std::vector<Recent> recent_;
  std::vector<Name*> used_;  // names counted in this block

  static bool read_fast(Layout& layout, const char* line, std::size_t size, std::uint64_t& time_us);
  void read_slowly(const char* line, std::size_t size, ScannedBlock& out);
  void take_record(const Record& record, ScannedBlock& out);
  void turn_back(const Record& record, ScannedBlock& out);
  void add(const Record& record, LineKind kind, std::uint32_t message_at, ScannedBlock& out);
  Call take_call(const char* message, std::size_t size, ScannedBlock& out);
  Name* find_name(const char* message, std::size_t size, ScannedBlock& out);
  void finish(ScannedBlock& out);

  const char* block_ = nullptr;
};

}  // namespace weir::amd
