// What a vendor's profiler says about commands that ran: the neutral table over it, and its records. cupti.cpp fills
// it; activity_trace.cpp is all that calls it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/gpu/api.h"

namespace weir {

// One kernel, copy or memset, with times on the host's monotonic clock; kNoTime where the profiler has none.
struct GpuActivityRecord {
  enum class Kind : std::uint8_t { kernel, copy, memset };
  enum class Channel : std::uint8_t { unknown, compute, copy, other };
  Kind kind = Kind::kernel;
  Channel channel_type = Channel::unknown;
  std::uint32_t correlation = 0;  // of the driver's call: grows from call to call of one thread
  std::uint32_t channel = 0;      // the hardware queue that launched it
  std::uint64_t stream = 0;       // as stream_id() gives it
  std::uint64_t graph_node = 0;   // 0 outside of graphs
  std::int64_t queued_ns = kNoTime, submitted_ns = kNoTime;
  std::int64_t started_ns = kNoTime, ended_ns = kNoTime;
};

// Results are 0 for success. There is one profiler in a process, so one session at a time may have it.
struct GpuActivity {
  int (*start)();  // kActivityBusy while somebody else has it
  void (*stop)();  // forgets what nobody took
  // Lets records of what has ended arrive. `is_forced`: also those that are incomplete, for which no times will come.
  int (*flush)(bool is_forced);
  // Names a stream as its records do, unique within the process. The stream's context is current.
  int (*stream_id)(GpuContext context, GpuStream stream, std::uint64_t* id);
  // Moves what has arrived behind `records`, in no dependable order; returns how many were lost since the last call.
  std::uint64_t (*take)(std::vector<GpuActivityRecord>* records);
  std::string (*describe)(int result);
  std::string version;  // CUPTI 13.0
};

inline constexpr int kActivityBusy = -1;

}  // namespace weir
