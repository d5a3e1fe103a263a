// Records of a vendor's profiler about commands that ran, and the neutral table over the profiler. cupti.cpp and
// rocprofiler.cpp fill the table; only activity_trace.cpp calls it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/gpu/api.h"

namespace weir {

// One kernel, copy or memset, with times on the host's monotonic clock; kNoTime if the profiler has none.
struct GpuActivityRecord {
  enum class Kind : std::uint8_t { kernel, copy, memset };
  enum class Channel : std::uint8_t { unknown, compute, copy, other };
  Kind kind = Kind::kernel;
  Channel channel_type = Channel::unknown;
  std::uint32_t correlation = 0;  // of the driver's call: grows from call to call of one thread
  std::uint32_t channel = 0;      // the hardware queue that launched it
  std::uint64_t stream = 0;       // as returned by stream_id()
  std::uint64_t graph_node = 0;   // 0 outside of graphs
  std::uint64_t mark = 0;         // as set by mark() when it was submitted
  std::int64_t queued_ns = kNoTime, submitted_ns = kNoTime;
  std::int64_t started_ns = kNoTime, ended_ns = kNoTime;
};

// Results are 0 for success. A process has one profiler, so only one session at a time may use it.
struct GpuActivity {
  int (*start)();  // returns kActivityBusy while it is in use
  void (*stop)();  // discards records that were not taken
  // Waits for the records of ended commands. `is_forced`: also takes incomplete ones, which will never get times.
  int (*flush)(bool is_forced);
  // Identifies a stream as its records do, unique within the process. The stream's context must be current.
  int (*stream_id)(GpuContext context, GpuStream stream, std::uint64_t* id);
  // Appends newly arrived records to `records`, in no particular order; returns how many were lost since the last call.
  std::uint64_t (*take)(std::vector<GpuActivityRecord>* records);
  std::string (*describe)(int result);
  std::string version;  // CUPTI 13.0
  // For a profiler that does not know streams; stream_id is then null. What the calling thread submits from now on is
  // recorded with this mark (0: with none), so that a command's records are those with its mark, however many they are.
  void (*mark)(std::uint64_t mark) = nullptr;
};

inline constexpr int kActivityBusy = -1;

}  // namespace weir
