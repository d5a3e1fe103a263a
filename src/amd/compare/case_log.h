// A side of a comparison from runtime logs, with or without snapshots of KFD beside them. Knows what a log shows and
// what it cannot show; no timeline.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "amd/compare/case_side.h"

namespace weir::amd {

// Rejects what read_log rejects.
CaseSide side_of_log(const std::filesystem::path& file, const std::atomic<bool>* stop = nullptr);
// A folder of `weir amd capture`. Rejects one that has neither a log nor a snapshot taken during the run.
CaseSide side_of_capture(const std::filesystem::path& folder, const std::atomic<bool>* stop = nullptr);

}  // namespace weir::amd
