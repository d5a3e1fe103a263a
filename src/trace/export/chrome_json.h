// Timelines as Chrome/Kineto JSON, which Perfetto, HolisticTraceAnalysis and TraceLens read, and our importer kineto.
// One process per file, as PyTorch writes them, or all ranks in one. Knows no device and no step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/json.h"
#include "measure/timeline.h"

namespace weir {

struct ChromeExport {
  // Whose commands; everything where the timeline has no lanes. Nothing: those of all processes, told apart by their
  // ranks, on lanes of their own.
  std::optional<std::uint16_t> process = 0;
  std::int64_t process_id = 0;              // of the host's lanes of one process; 0 where it is not known
  int world_size = 1;                       // ranks; of all processes at least as many as have commands
  Json device_properties = Json::object();  // of its devices alike: numSms, totalGlobalMem, ... as Kineto names them
  Json about = Json::object();              // goes to "weir" as it is, besides what the timeline knows of itself
  std::function<void()> progress;           // called for every megabyte; may be empty, may throw to stop
};

// Writes commands on a lane per stream and again on a lane per hardware queue, calls, waits with arrows, and ranges.
// Commands without start or end are left out and counted in "weir". Strings that are not UTF-8 are mended.
void write_chrome_json(const Timeline& timeline, const ChromeExport& options, const std::filesystem::path& path,
                       bool overwrite);

}  // namespace weir
