// Writes timelines as Chrome/Kineto JSON, which Perfetto, HolisticTraceAnalysis, TraceLens and Weir's own importer
// kineto read. One process per file, as PyTorch does, or all ranks in one. Knows no device and no step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/json.h"
#include "measure/timeline.h"

namespace weir {

struct ChromeExport {
  // The process whose commands are written; all commands where the timeline has no lanes. Empty: those of all
  // processes, distinguished by rank, on separate lanes.
  std::optional<std::uint16_t> process = 0;
  std::int64_t process_id = 0;              // for the host lanes of a single process; 0 where unknown
  int world_size = 1;                       // ranks; for all processes, at least as many as have commands
  Json device_properties = Json::object();  // same for all devices: numSms, totalGlobalMem, ... as in Kineto
  Json about = Json::object();     // written to "weir" unchanged, in addition to what the timeline knows about itself
  std::function<void()> progress;  // called for every megabyte; may be empty, may throw to stop
};

// Writes commands on a lane per stream and again on a lane per hardware queue, calls, waits with arrows, and ranges.
// Commands without start or end are left out and counted in "weir". Invalid UTF-8 is repaired.
void write_chrome_json(const Timeline& timeline, const ChromeExport& options, const std::filesystem::path& path,
                       bool overwrite);

}  // namespace weir
