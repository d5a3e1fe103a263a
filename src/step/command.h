// One unit of GPU work and the data it touches. Plain records; no device, no pointers, no strings.
#pragma once

#include <algorithm>
#include <compare>
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
  copy,        // from its first access to its second
  host,        // a kernel's CPU body on host threads, in stream order; touches host memory only
  collective,  // between ranks; its first access is the input, its second the output
};

// What a collective of n elements per rank computes; R is the number of ranks, r this rank.
enum class CollectiveOp : std::uint8_t {
  all_gather,      // n -> n R: every rank's part, in rank order
  reduce_scatter,  // n R -> n: the sum over ranks of part r
  all_reduce,      // n -> n: the sum over ranks
  all_to_all,      // n R -> n R: part s of the output is part r of rank s
  shift,           // n -> n: the data of rank r - 1 (rank 0 gets the last rank's)
};

constexpr std::string_view name_of(CollectiveOp op) {
  constexpr std::string_view kNames[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "shift"};
  return kNames[static_cast<int>(op)];
}

// This process's rank, and the number of ranks.
struct Ranks {
  int rank = 0;
  int count = 1;
  bool has_lone_collectives = false;  // a single rank also runs collectives, with itself; otherwise they become copies
  bool has_collectives() const { return count > 1 || has_lone_collectives; }
};

// The ranks that a collective is between: `size` of them, `stride` apart. Size 0: all. With 8 ranks {1, 2} are the
// pairs 0-1, 2-3, 4-5, 6-7, and {4, 2} the pairs 0-4, 1-5, 2-6, 3-7. `offset` moves the groups down by as many members,
// so that {1, 2, 1} are the pairs 1-2, 3-4, 5-6, and 0 and 7 alone.
struct RankGroup {
  int stride = 1;
  int size = 0;
  int offset = 0;
  constexpr bool has_all() const { return size == 0; }
  friend auto operator<=>(const RankGroup&, const RankGroup&) = default;

  // The lowest rank of `rank`'s group.
  constexpr int first(int rank) const {
    if (has_all()) return 0;
    const int position = rank / stride;
    return std::max(0, position - (position + offset) % size) * stride + rank % stride;
  }
  // This rank among those of its group.
  constexpr Ranks within(Ranks all) const {
    if (has_all()) return all;
    // Of the ranks that are so far apart: there may be one more of the lower ones.
    const int positions = (all.count - all.rank % stride + stride - 1) / stride;
    const int position = all.rank / stride, begin = first(all.rank) / stride;
    const int end = std::min(positions, position - (position + offset) % size + size);
    return {position - begin, end - begin, all.has_lone_collectives};
  }
};

// A byte range of a buffer that a command reads, writes, or both.
struct Access {
  BufferId buffer = 0;
  bool reads = false;
  bool writes = false;
  bool is_partial = false;  // writes a part that depends on the data; the rest keeps its contents
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
};

// `shape` and `kernel` are used by kernels, on the device or on the host; a collective uses shape.type.
struct Command {
  CommandKind kind = CommandKind::kernel;
  std::uint8_t role = 0;     // index into the workload's role names, e.g. large and small
  std::int8_t priority = 0;  // higher is more urgent; 0 is normal
  StreamId stream = 0;       // natural stream
  CollectiveOp collective{};
  RankGroup group;  // of a collective
  KernelId kernel{};
  std::uint32_t first_access = 0;
  std::uint32_t access_count = 0;
  KernelShape shape;
};

// Where a buffer lives: in device memory, or in (pinned) host memory that the device can copy from and to.
enum class Place : std::uint8_t { device, host };

// The contents of a buffer before the first iteration.
enum class Init : std::uint8_t {
  poison,    // NaN (or -1): an output that was never written cannot pass a check
  uniform,   // offset + scale * [-1, 1); i32: 0..scale-1 at random
  constant,  // offset
  indices,   // i32: a random permutation of 0..count-1
  ramp,      // offset + scale * i / count; i32: i
};

// Which elements of a longer sequence a buffer starts with: `run` of them from `first` on, then as many `stride` later,
// and so on. Run 0: contiguous. A rank's shard of a parameter starts as part of the whole this way.
struct Slice {
  std::uint64_t first = 0;
  std::uint64_t run = 0;
  std::uint64_t stride = 0;
  std::uint64_t operator[](std::uint64_t i) const { return first + (run == 0 ? i : i / run * stride + i % run); }
  // The number of contiguous elements from the start of a run, if `count` are left.
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
  Slice slice;              // of the values from `uniform`
  bool is_written = false;  // by some command of the step; then it is checked

  std::uint64_t size_bytes() const { return count * size_of(type); }
};

}  // namespace weir
