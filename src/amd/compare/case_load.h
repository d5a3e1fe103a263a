// Loads one side of a comparison from a path: a folder of `weir amd capture`, a runtime log, the report of one, or a
// trace. Detects which it is, and knows what each can show.
#pragma once

#include <atomic>
#include <filesystem>

#include "amd/compare/case_side.h"
#include "base/json.h"
#include "measure/timeline.h"
#include "trace/import/import.h"

namespace weir::amd {

struct CaseLoadOptions {
  ImportOptions import;                     // for traces
  const std::atomic<bool>* stop = nullptr;  // ends the reading of a log early
};

// Rejects a path that is missing, empty, or of no such type, and names the types that are accepted.
CaseSide load_case(const std::filesystem::path& path, const CaseLoadOptions& options = {});

// From a runtime log. Rejects what read_log rejects.
CaseSide side_of_log(const std::filesystem::path& file, const std::atomic<bool>* stop = nullptr);
// From a folder of `weir amd capture`: logs, with or without KFD snapshots. Rejects a folder that has neither a log nor
// a snapshot taken during the run.
CaseSide side_of_capture(const std::filesystem::path& folder, const std::atomic<bool>* stop = nullptr);
// From the report of a runtime log (`weir amd log --json`), which is not trusted. Rejects one without processes.
CaseSide side_of_log_report(const Json& document, const std::string& name);
// From a timeline: of Weir's own runs on any device, or any trace that can be imported. Rejects one without a kernel.
CaseSide side_of_timeline(const Timeline& timeline, const std::string& name);

}  // namespace weir::amd
