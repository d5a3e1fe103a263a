// The memory that the library in a recorded program writes and `weir record` reads: the program's last commands and
// calls of the driver, mapped from a file, so that they survive the death of both. Plain structs without pointers;
// knows no profiler. Everything is little endian; times are on the clock that the header names.
//
// A file is a Header, then tables at the offsets that it gives: threads, streams, texts, chunks. The writer is in
// other people's programs and may die at any instruction; readers trust no count, offset or number in the file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::record {

inline constexpr char kMagic[8] = {'W', 'E', 'I', 'R', 'R', 'E', 'C', '1'};
inline constexpr std::uint32_t kVersion = 1;        // readers refuse others
inline constexpr std::uint32_t kNone = UINT32_MAX;  // an unknown stream, thread, context or device
inline constexpr std::uint32_t kNoText = 0;
inline constexpr std::size_t kFunctions = 1024;  // numbers of functions of the driver are smaller
inline constexpr std::size_t kChunkBytes = 65536;
inline constexpr const char* kSuffix =
    ".weirrec";  // of files: PID.weirrec, PID.1.weirrec where a process executed another program

// What `weir record` sets for the program that it starts.
inline constexpr const char* kFolderVariable = "WEIR_RECORD_FOLDER";  // where the file goes; it exists and is private
inline constexpr const char* kBytesVariable = "WEIR_RECORD_BYTES";    // of all chunks; default 64 MiB
inline constexpr const char* kExactVariable =
    "WEIR_RECORD_EXACT";                                          // any value: records of the device for every command
inline constexpr const char* kOffVariable = "WEIR_RECORD_OFF";    // any value: begins switched off
inline constexpr const char* kHangVariable = "WEIR_RECORD_HANG";  // any value: stacks will be asked for

enum class State : std::uint32_t {
  starting = 0,
  running = 1,
  ended = 2,    // the program ended normally
  refused = 3,  // nothing is recorded: `message` says why
};

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  // Sizes and offsets of the tables; never change.
  std::uint32_t threads, streams, text_bytes, chunks;
  std::uint64_t threads_at, streams_at, texts_at, chunks_at;
  std::uint64_t pid, parent_pid;
  std::int64_t started_ns;
  std::int64_t unix_ns;        // the same moment as time since 1970
  std::uint32_t clock;         // text: its name
  std::uint32_t command_line;  // text: words, each followed by \0
  // Written by `weir record on|off`, read by the library a few times a second.
  std::uint32_t wanted_off;
  // Written by the library.
  std::uint32_t is_off;
  std::uint32_t state;    // State
  std::uint32_t message;  // text: what does not work, and why
  std::uint32_t is_exact;
  std::uint32_t texts_used;  // bytes
  std::uint64_t claimed;     // chunks that were ever begun; the sequence number of the newest one
  std::uint64_t lost;        // entries that found no place
  std::int64_t beat_ns;      // the library's own thread was alive then
  std::int64_t ended_ns;     // of the program, where `state` is ended; 0: not known
  // Stacks of the program's threads, which the library writes when `weir record` asks: it increases stacks_wanted, and
  // the library sets stacks_given to it when `stacks` (text) is there.
  std::uint32_t stacks_wanted, stacks_given;
  std::uint32_t stacks;
  std::uint32_t reserved;
  std::int64_t overwritten_ns;          // entries that ended later are all there; 0: none was overwritten
  std::uint64_t process_started;        // in clock ticks since boot; with the pid it names a process
  std::uint32_t functions[kFunctions];  // text: name of each function, by number
};

enum class Kind : std::uint8_t {
  other = 0,
  // Commands: they go to a stream and run on the device.
  launch = 1,
  copy = 2,
  memset = 3,
  graph_launch = 4,
  host_function = 5,
  memory_operation = 6,  // a wait for, or a write of, a word in memory
  // Calls about order.
  event_record = 10,
  stream_wait_event = 11,
  event_synchronize = 12,
  stream_synchronize = 13,
  context_synchronize = 14,
  synchronous_copy = 15,  // the host waits until it has ended; a command as well
  event_create = 16,
  event_destroy = 17,
  // Not calls of the driver.
  mark = 30,    // commands of a stream that were seen to have ended
  device = 31,  // the device's own record of one command
  range = 32,   // that the program named
};

constexpr bool is_command(Kind kind) noexcept {
  return (kind >= Kind::launch && kind <= Kind::memory_operation) || kind == Kind::synchronous_copy;
}

namespace flag {
inline constexpr std::uint8_t kFailed = 1;    // the driver returned an error: nothing was enqueued or waited for
inline constexpr std::uint8_t kCaptured = 2;  // into a graph: nothing ran
}  // namespace flag

// One call of the driver by the thread of its chunk. A mark, a device's record and a range differ as noted.
struct Entry {
  std::int64_t started_ns;  // mark: when its commands had ended, by the device
  std::int64_t ended_ns;    // mark: when that was seen
  // Event, executable graph; copies and memsets: bytes; operations on memory: address, 0 for several at once; mark:
  // commands of the stream by then.
  std::uint64_t object;
  std::uint32_t stream;       // place in the table of streams, or kNone
  std::uint32_t context;      // or kNone
  std::uint32_t correlation;  // increases with calls; a device's record has that of its call
  std::uint32_t name;         // text: kernel or range
  std::uint16_t function;     // number; device: type of the channel
  std::uint8_t kind;          // Kind; of a device's record `device`
  std::uint8_t flags;
  std::uint32_t
      number;  // command: which of its stream, from 1, modulo 2^32; mark: error in ns; device: channel, or kNone
};

// Entries that are published, in the order in which the calls returned, follow.
struct ChunkHeader {
  std::uint64_t sequence;  // from 1; changes when the chunk is begun anew. 0: never used
  std::uint32_t thread;    // place in the table of threads
  std::uint32_t count;     // published entries
  std::uint32_t state;     // ChunkState
  std::uint32_t reserved[11];
};
enum class ChunkState : std::uint32_t { free = 0, open = 1, full = 2 };
inline constexpr std::size_t kChunkEntries = (kChunkBytes - sizeof(ChunkHeader)) / sizeof(Entry);

struct Thread {
  std::uint32_t id;  // as the kernel knows it; 0: unused
  std::uint32_t has_ended;
  char name[16];
  std::uint64_t calls, commands;  // so far
  // The call that it is in; started_ns 0: none.
  std::int64_t started_ns;
  std::uint64_t object;
  std::uint32_t stream;
  std::uint32_t context;
  std::uint32_t name_of_kernel;
  std::uint16_t function;
  std::uint8_t kind;
  std::uint8_t reserved;
  std::uint32_t padding[14];
};

struct Stream {
  std::uint64_t handle;  // as the program knows it
  std::uint32_t context;
  std::uint32_t id;      // as the vendor's records number it, or kNone
  std::uint32_t device;  // or kNone
  std::uint32_t is_used;
  std::uint32_t is_destroyed;
  std::uint32_t thread;       // kNone; else of whose thread it is the default stream
  std::uint64_t submitted;    // commands so far
  std::uint64_t ended;        // of these, known to have ended; lags behind what has
  std::int64_t submitted_ns;  // when the last was submitted
  std::int64_t ended_ns;      // when the last known end was seen
  std::uint64_t pending;      // the oldest mark that was not reached stands after this command; 0: there is none
  std::uint64_t collectives;  // of `submitted`, kernels of NCCL or RCCL
  std::uint32_t padding[12];
};

// In the table of texts, at an offset that is the text's number: the length, the bytes, zeros up to a multiple of 4.
// 0 is no text.
struct TextHeader {
  std::uint32_t bytes;
};

static_assert(sizeof(Entry) == 48 && sizeof(ChunkHeader) == 64 && sizeof(Thread) == 128 && sizeof(Stream) == 128);
static_assert(sizeof(Header) % 8 == 0 && offsetof(Header, claimed) % 8 == 0);

}  // namespace weir::record
