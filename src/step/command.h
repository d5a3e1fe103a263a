// One unit of GPU work and the data it touches. Plain records; no device, no pointers, no strings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "kernel/kernel.h"

namespace weir {

using CommandId = std::uint32_t;
using BufferId = std::uint32_t;
using StreamId = std::uint16_t;

inline constexpr int kMaxStreams = 128;

enum class CommandKind : std::uint8_t {
  kernel,      // on the device
  copy,        // its first access to its second
  host,        // a kernel's CPU body on host threads, in stream order; touches host memory only
  collective,  // between ranks: its first access in, its second out
};

// What a collective of n elements per rank does; R ranks, r this one.
enum class CollectiveOp : std::uint8_t {
  all_gather,      // n -> n R: every rank's part, in rank order
  reduce_scatter,  // n R -> n: the sum over ranks of part r
  all_reduce,      // n -> n: the sum over ranks
  all_to_all,      // n R -> n R: part s of the output is part r of rank s
  shift,           // n -> n: what rank r - 1 has (the last one's for rank 0)
};

constexpr std::string_view name_of(CollectiveOp op) {
  constexpr std::string_view kNames[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "shift"};
  return kNames[static_cast<int>(op)];
}

// Which process of how many this is.
struct Ranks {
  int rank = 0;
  int count = 1;
  bool talks_alone = false;  // one rank has collectives too, with itself; else they become copies
  bool has_collectives() const { return count > 1 || talks_alone; }
};

// A byte range of a buffer that a command reads, writes, or both.
struct Access {
  BufferId buffer = 0;
  bool reads = false;
  bool writes = false;
  bool is_partial = false;  // writes a part that the data decides: the rest keeps what was there
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
};

// `shape` and `kernel` have a meaning for kernels, on the device or on the host; a collective uses shape.type.
struct Command {
  CommandKind kind = CommandKind::kernel;
  std::uint8_t role = 0;     // index into the workload's role names, e.g. large and small
  std::int8_t priority = 0;  // higher is more urgent; 0 is normal
  StreamId stream = 0;       // natural stream
  CollectiveOp collective{};
  KernelId kernel{};
  std::uint32_t first_access = 0;
  std::uint32_t access_count = 0;
  KernelShape shape;
};

// Where a buffer lives: in the device's memory, or in (pinned) host memory that it can copy from and to.
enum class Place : std::uint8_t { device, host };

// How a buffer looks before the first iteration.
enum class Init : std::uint8_t {
  poison,    // NaN (or -1): an output that was never written cannot pass a check
  uniform,   // offset + scale * [-1, 1); i32: 0..scale-1 at random
  constant,  // offset
  indices,   // i32: a random permutation of 0..count-1
  ramp,      // offset + scale * i / count; i32: i
};

// Which elements of a longer sequence a buffer begins with: `run` of them from `first` on, then as many `stride` later,
// and so on. Run 0: one after the other. How a rank's shard of a parameter starts as part of the whole.
struct Slice {
  std::uint64_t first = 0;
  std::uint64_t run = 0;
  std::uint64_t stride = 0;
  std::uint64_t operator[](std::uint64_t i) const { return first + (run == 0 ? i : i / run * stride + i % run); }
  // How many elements from a run's begin on follow each other, where `count` are left.
  std::uint64_t length(std::uint64_t count) const { return run == 0 ? count : std::min(run, count); }
};

struct Buffer {
  ElementType type = ElementType::f32;
  Place place = Place::device;
  Init init = Init::poison;
  float scale = 1;
  float offset = 0;
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
  Slice slice;              // of the values that `uniform` gives
  bool is_written = false;  // by some command of the step: then it is checked

  std::uint64_t size_bytes() const { return count * size_of(type); }
};

}  // namespace weir
