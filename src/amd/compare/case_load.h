// From a path to one side of a comparison: a folder of `weir amd capture`, a runtime log, the report of one, or a
// trace. Knows how to tell them apart, and what each shows and cannot show.
#pragma once

#include <atomic>
#include <filesystem>

#include "amd/compare/case_side.h"
#include "base/json.h"
#include "measure/timeline.h"
#include "trace/import/import.h"

namespace weir::amd {

struct CaseLoadOptions {
  ImportOptions import;                     // of traces
  const std::atomic<bool>* stop = nullptr;  // ends the reading of a log early
};

// Rejects what is missing, empty, or none of them, and says what is wanted.
CaseSide load_case(const std::filesystem::path& path, const CaseLoadOptions& options = {});

// Of a runtime log. Rejects what read_log rejects.
CaseSide side_of_log(const std::filesystem::path& file, const std::atomic<bool>* stop = nullptr);
// Of a folder of `weir amd capture`: logs, with or without snapshots of KFD beside them. Rejects one that has neither a
// log nor a snapshot taken during the run.
CaseSide side_of_capture(const std::filesystem::path& folder, const std::atomic<bool>* stop = nullptr);
// Of the report of a runtime log (`weir amd log --report json`). Documents may come from anywhere: nothing in it is
// taken for granted. Rejects one without processes.
CaseSide side_of_log_report(const Json& document, const std::string& name);
// Of a timeline: of our own runs, on any device, or of any trace that can be imported. Rejects one without a kernel.
CaseSide side_of_timeline(const Timeline& timeline, const std::string& name);

}  // namespace weir::amd
