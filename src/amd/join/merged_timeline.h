// A combined timeline of a capture, from runtime calls to hardware queues, as Chrome JSON for Perfetto and
// chrome://tracing: lanes for host threads, streams, hardware queues, and KFD per process. Reads log and trace once
// more, in constant memory. Times are the log's; events that cannot be put on its clock are omitted and counted.
#pragma once

#include <atomic>
#include <filesystem>

#include "amd/join/join_load.h"

namespace weir::amd {

struct TimelineCounts {
  std::uint64_t slices = 0, marks = 0, arrows = 0;
  std::uint64_t kfd_spans = 0;
  std::uint64_t kfd_left_out = 0;  // on the other clock, without an offset
  std::uint64_t without_time = 0;  // spans of a trace without times
  std::uint64_t without_lane = 0;  // events on lanes beyond the limit, which share one
  bool is_stopped = false;         // nothing was written
};

TimelineCounts write_merged_timeline(const LoadedCapture& capture, const Join& join, const std::filesystem::path& path,
                                     bool overwrite, const std::atomic<bool>* stop);

Json to_json(const TimelineCounts& counts, const std::string& file);

class TimelineEvents;
// The part of the above that comes from the logs, which are read once more, and the snapshots.
void write_log_lanes(const LoadedCapture& capture, const Join& join, TimelineEvents& events,
                     const std::atomic<bool>* stop);

}  // namespace weir::amd
