// The calls of one run of a program, or of one iteration of a step, in their order. A program's log and a step's plan
// both become this, and everything else here reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::race {

enum class Kind : std::uint8_t {
  kernel,
  copy,
  set,
  host_function,
  graph_launch,
  memory_operation,
  event_record,
  stream_wait_event,
  event_synchronize,
  stream_synchronize,
  context_synchronize,
  allocate,
  release,
  checkpoint,
};
constexpr bool is_command(Kind kind) { return kind <= Kind::memory_operation; }

// The S-th command that the T-th thread submitted, both from 1: the same command in every run.
struct CommandName {
  std::uint32_t thread = 0, sequence = 0;
  friend auto operator<=>(const CommandName&, const CommandName&) = default;
};
std::string text(CommandName name);  // 1.417
std::optional<CommandName> read_command_name(std::string_view text);

// Memory that a command touches: [begin, end).
struct Range {
  std::uint64_t begin = 0, end = 0;
  bool reads = true, writes = true;  // both, where it is not known
  bool is_exact = false;             // false: it may end before, and where other pointers begin it probably does
};

struct Call {
  Kind kind = Kind::kernel;
  bool is_captured = false;     // into a graph: it runs with each launch of that
  bool is_synchronous = false;  // a command whose end the host has waited for
  bool is_host = false;         // an allocation of host memory
  std::uint16_t device = 0;     // whose streams a context_synchronize waits for
  std::uint32_t capture = 0;    // with is_captured: which one, from 1; 0: not known
  CommandName name;             // sequence 0: no command
  std::uint32_t stream = 0;     // index into streams; kNoStream
  std::uint32_t label = 0;      // index into texts: kernel, or what a checkpoint is called
  std::uint64_t object = 0;     // event, graph
  std::int64_t time_ns = 0;
  std::uint32_t first_range = 0, range_count = 0;
};
inline constexpr std::uint32_t kNoStream = UINT32_MAX;

struct Stream {
  std::string name;          // "stream 7"
  bool is_blocking = false;  // waits for, and is waited for by, the legacy default stream
  bool is_legacy = false;
  std::uint16_t device = 0;
};

// Hashes of the memory that a command may touch, before and after it, in the order of its accesses; both are 0 where
// there is no hash.
struct Hashes {
  CommandName name;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> before_behind;
};

struct Log {
  std::vector<Call> calls;
  std::vector<Range> ranges;
  std::vector<Stream> streams;
  std::vector<std::string> texts{1};  // 0: empty
  std::vector<Hashes> hashes;
  std::uint64_t unread = 0;  // entries that made no sense

  std::span<const Range> ranges_of(const Call& call) const {
    return std::span(ranges).subspan(call.first_range, call.range_count);
  }
  const std::string& label_of(const Call& call) const { return texts[call.label]; }
};

}  // namespace weir::race
