// What `weir race` and the library inside a program say to each other, in one private folder: a plan that the library
// follows, and the log that it writes. The log is plain structs, little endian; its writer may die at any instruction,
// so readers trust no count and no number in it. Knows no vendor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::race_format {

inline constexpr const char* kFolderVariable = "WEIR_RACE_FOLDER";  // set by `weir race`; exists and is private

// Files in the folder. The first process that submits a command, begins a capture or makes a checkpoint creates `claim`
// (it must not exist) with its pid, and follows the plan; its children and siblings run undisturbed.
inline constexpr const char* kPlanFile = "plan";
inline constexpr const char* kClaimFile = "claim";
inline constexpr const char* kLogFile = "log";          // with `observe`
inline constexpr const char* kDigestsFile = "digests";  // one line per checkpoint: NAME COUNT HEX
// A line per instruction, as the plan has it: "delay 1.7 400000: done", "wait 1.3 1.9: left out: REASON"; so too for
// each delay by `blind`. "command 9.9: was not reached" at the end. Other lines say what else went wrong.
inline constexpr const char* kNotesFile = "notes";
inline constexpr const char* kStacksFile = "stacks";  // with `stack`: "command T.S", then the frames, an empty line

// The plan is text: kPlanTitle, then an instruction per line. A command is named T.S: the S-th (from 1) that the T-th
// thread (from 1, in the order of their first commands, records of events and waits of streams) submitted, which is the
// same in every run of a program whose threads each do the same again. Commands are kernels, copies, sets, host
// functions, graph launches and operations on memory, captured ones included.
//   observe               write the log
//   blind SEED ONE_IN NS  a delay before every command for which mix(SEED, T, S) % ONE_IN == 0
//   most COUNT            no more than so many delays by `blind` (default kMostDelays)
//   delay T.S NS          a delay in the command's stream, before it
//   wait T.S T.S          an event is recorded behind the first, and the second's stream waits for it
//   join T.S              the host waits for the command before its call returns, 5 s at most
//   hash T.S              what the command's pointers lead to is hashed before and behind it, the device being idle
//   stack T.S             the host's stack at the call
inline constexpr const char* kPlanTitle = "weir race plan 1";
inline constexpr std::int64_t kLongestDelayNs = 10'000'000;
inline constexpr std::uint32_t kMostDelays = 10'000, kMostInstructions = 10'000;

// splitmix64 over the three, so that every part that chooses by seed chooses alike.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint32_t thread, std::uint32_t sequence) noexcept {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15u * ((static_cast<std::uint64_t>(thread) << 32) + sequence + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline constexpr char kMagic[8] = {'W', 'E', 'I', 'R', 'R', 'A', 'C', '1'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kNone = UINT32_MAX;

struct Header {
  char magic[8];
  std::uint32_t version, pid;
  std::int64_t started_ns;
};

enum class Kind : std::uint8_t {
  // Commands.
  kernel = 1,
  copy = 2,
  set = 3,
  host_function = 4,
  graph_launch = 5,      // object: the executable graph
  memory_operation = 6,  // a wait for, or a write of, a word in memory
  // Order. `object`: the event.
  event_record = 10,
  stream_wait_event = 11,
  event_synchronize = 12,  // also a query that found it ended
  stream_synchronize = 13,
  context_synchronize = 14,
  // Memory: one access, the whole block. `stream`: of stream-ordered ones, else kNone. A free that waits for the device
  // is followed by a context_synchronize.
  allocate = 20,
  release = 21,
  // Names, before their first use. A text follows the entry, `accesses` is its length in bytes.
  text = 30,    // `object`: its number, from 1
  stream = 31,  // `stream`: its number; `object`: its handle; flags: kBlocking, kLegacy; `name`: what it is called
  // Graphs.
  capture_begins = 40,  // of `stream`
  capture_ends = 41,    // `object`: the graph
  graph_made = 42,      // `object`: the executable graph; `other`: the graph that it was made of
  // The program said what it computes. `name`: as the program called it.
  checkpoint = 50,
  hashed = 51,  // of a `hash`: `thread` and `sequence` name the command; each access has the hash before it in `begin`
                // and behind it in `bytes`, in the order of the command's own accesses (the first 256); `how` is 0
                // where there are no hashes
};

inline constexpr std::uint8_t kFailed = 1;       // the driver returned an error: nothing was done
inline constexpr std::uint8_t kCaptured = 2;     // into a graph: nothing ran
inline constexpr std::uint8_t kSynchronous = 4;  // a command: the host has waited for its end; so too asynchronous
                                                 // copies into pageable memory, as the driver does
inline constexpr std::uint8_t kBlocking = 8;     // a stream: ordered with the legacy default stream
inline constexpr std::uint8_t kLegacy = 16;      // a stream: the legacy default stream
inline constexpr std::uint8_t kHost = 32;        // an allocation: host memory

// One call, written when it has returned; entries stand in the order in which the calls returned.
struct Entry {
  std::uint32_t accesses;  // Access structs that follow, or bytes of text
  std::uint8_t kind, flags;
  std::uint16_t device;
  std::uint32_t thread;    // from 1; also 1: memory of a thread that has submitted nothing yet
  std::uint32_t sequence;  // of commands, from 1; else 0
  std::uint32_t stream;    // number, or kNone
  std::uint32_t name;      // text: kernel; 0: none
  std::uint64_t object, other;
  std::int64_t time_ns;  // when the call began, on CLOCK_MONOTONIC
};
static_assert(sizeof(Entry) == 48);

inline constexpr std::uint32_t kReads = 1, kWrites = 2;  // both: not known which
inline constexpr std::uint32_t kExact = 4;  // the range is what is touched; else it begins there and may reach to the
                                            // end of its allocation
struct Access {
  std::uint64_t begin, bytes;  // 0 bytes: not known
  std::uint32_t how;
  std::uint32_t parameter;  // of a kernel, from 0
};
static_assert(sizeof(Access) == 24);

}  // namespace weir::race_format
