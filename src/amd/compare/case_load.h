// From a path to one side of a comparison: a folder of `weir amd capture`, a runtime log, the report of one, or a
// trace. Knows how to tell them apart.
#pragma once

#include <atomic>
#include <filesystem>

#include "amd/compare/case_side.h"
#include "trace/import/import.h"

namespace weir::amd {

struct CaseLoadOptions {
  ImportOptions import;                     // of traces
  const std::atomic<bool>* stop = nullptr;  // ends the reading of a log early
};

// Rejects what is missing, empty, or none of them, and says what is wanted.
CaseSide load_case(const std::filesystem::path& path, const CaseLoadOptions& options = {});

}  // namespace weir::amd
