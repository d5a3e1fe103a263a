// The binary file that `weir profile -- program` writes, one per process: written by the injection library, read by the
// importer weir_capture. Plain structs, because the writer runs inside other people's programs; knows no profiler.
//
// A file is a FileHeader, then blocks until it ends: BlockHeader, then `bytes` of payload without padding. Everything
// is little endian. Arrays of records state the size of a record, so that later versions can append fields; readers
// skip blocks of unknown types. A file may end anywhere, because its program may be killed.
#pragma once

#include <cstdint>

namespace weir::capture {

inline constexpr char kMagic[8] = {'W', 'E', 'I', 'R', 'C', 'A', 'P', '1'};
inline constexpr std::uint32_t kVersion = 1;           // readers refuse later versions, which are incompatible
inline constexpr std::uint32_t kMaxBytes = 16U << 20;  // of a block's payload
inline constexpr std::uint32_t kNone = UINT32_MAX;     // an unknown name, channel, event or device
inline constexpr std::int64_t kUnknownTime = 0;        // for every time except starts and ends of commands

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
};

enum class Block : std::uint32_t {
  process = 1,    // ProcessFacts, then texts that end in \0: the clock's name, then each word of the command line
  device = 2,     // DeviceFacts, then the device's name
  name = 3,       // NameFacts, then the text; before the first record that uses it
  kernels = 4,    // ArrayHeader, then KernelRecord ...
  copies = 5,     // ArrayHeader, then CopyRecord ... (memsets too)
  calls = 6,      // ArrayHeader, then CallRecord ...
  syncs = 7,      // ArrayHeader, then SyncRecord ...
  events = 8,     // ArrayHeader, then EventRecord ...
  markers = 9,    // ArrayHeader, then MarkerRecord ...
  contexts = 10,  // ArrayHeader, then ContextRecord ...
  lost = 11,      // LostFacts, then the reason as text; the counts add up
  message = 12,   // text: what went wrong and what was done about it
  end = 13,       // EndFacts: the program ended normally
};

struct BlockHeader {
  std::uint32_t type;  // Block
  std::uint32_t bytes;
};

struct ArrayHeader {
  std::uint32_t record_bytes;
  std::uint32_t count;
};

struct ProcessFacts {
  std::uint64_t pid;
  std::uint64_t parent_pid;
  std::int64_t started_ns;  // on the clock of all times in the file
  std::int64_t unix_ns;     // the same moment as time since 1970
};

struct DeviceFacts {
  std::uint32_t device;
  std::uint32_t reserved;
};

struct NameFacts {
  std::uint32_t name;
  std::uint32_t reserved;
};

// The numbers are CUPTI's.
enum class ChannelType : std::uint32_t { unknown = 0, compute = 1, async_memcpy = 2, decompression = 3 };

// Where and when a command ran. The call that launches it has the same correlation.
struct Place {
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t channel;       // the hardware queue's number on its device, or kNone
  std::uint32_t channel_type;  // ChannelType
  std::uint32_t graph;         // id of the executable graph; 0: not from a graph
  std::uint64_t graph_node;
  std::uint64_t correlation;  // 0: none
  std::int64_t queued_ns;     // put into the driver's buffer; kUnknownTime where latency timestamps are off
  std::int64_t submitted_ns;  // given to the device; kUnknownTime likewise
  std::int64_t started_ns;
  std::int64_t ended_ns;
};

struct KernelRecord {
  Place place;
  std::uint32_t name;
  std::uint32_t reserved;
};

// The numbers for copies are CUPTI's; the one for memsets is Weir's own.
enum class CopyKind : std::uint32_t {
  unknown = 0,
  host_to_device = 1,
  device_to_host = 2,
  host_to_array = 3,
  array_to_host = 4,
  array_to_array = 5,
  array_to_device = 6,
  device_to_array = 7,
  device_to_device = 8,
  host_to_host = 9,
  peer_to_peer = 10,
  memset = 100,
};

struct CopyRecord {
  Place place;
  std::uint64_t bytes;
  std::uint32_t kind;         // CopyKind
  std::uint32_t peer_device;  // the other device of a peer-to-peer copy, or kNone
};

struct CallRecord {
  std::uint32_t name;    // of the function, or kNone
  std::uint32_t thread;  // thread id as the kernel knows it
  std::uint64_t correlation;
  std::int64_t started_ns;
  std::int64_t ended_ns;
};

// The numbers are CUPTI's.
enum class SyncType : std::uint32_t {
  unknown = 0,
  event_synchronize = 1,   // the host waits for an event
  stream_wait_event = 2,   // a stream waits for an event
  stream_synchronize = 3,  // the host waits for a stream
  context_synchronize = 4  // the host waits for everything in a context
};

struct SyncRecord {
  std::uint32_t type;  // SyncType
  std::uint32_t context;
  std::uint32_t stream;      // the one that waits or is waited for; kNone where there is none
  std::uint32_t event;       // or kNone
  std::uint64_t event_sync;  // distinguishes records of one event (CUPTI's cudaEventSyncId); 0 where unknown
  std::uint64_t correlation;
  std::int64_t started_ns;
  std::int64_t ended_ns;
};

// An event was recorded on a stream.
struct EventRecord {
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t event;
  std::uint32_t device;  // or kNone
  std::uint64_t event_sync;
  std::uint64_t correlation;
};

// A range that the program named (NVTX), on the host.
struct MarkerRecord {
  std::uint32_t name;
  std::uint32_t thread;
  std::int64_t started_ns;
  std::int64_t ended_ns;
};

// Which device a context is on; waits name only contexts.
struct ContextRecord {
  std::uint32_t context;
  std::uint32_t device;
};

struct LostFacts {
  std::uint64_t records;
};

struct EndFacts {
  std::int64_t ended_ns;
};

static_assert(sizeof(FileHeader) == 16 && sizeof(BlockHeader) == 8 && sizeof(ArrayHeader) == 8);
static_assert(sizeof(ProcessFacts) == 32 && sizeof(Place) == 72 && sizeof(KernelRecord) == 80);
static_assert(sizeof(CopyRecord) == 88 && sizeof(CallRecord) == 32 && sizeof(SyncRecord) == 48);
static_assert(sizeof(EventRecord) == 32 && sizeof(MarkerRecord) == 24 && sizeof(ContextRecord) == 8);

}  // namespace weir::capture
