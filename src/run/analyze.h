// Everything that the analyses find in a timeline, as one document (weir.analysis/1; docs/schema/weir.analysis.1.json).
// Reads no file and prints nothing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/timeline.h"
#include "trace/import/import.h"

namespace weir {

struct AnalyzeOptions {
  std::size_t top = 15;  // kernels and other lists of names
  std::vector<std::string> command_line;
};

// Several processes with commands are ranks: their clocks are brought together first, so `timeline` may be moved.
Json analyze_timeline(Timeline& timeline, const std::vector<ImportedFile>& files, const AnalyzeOptions& options);

// Per class of command the hops of the way; as in the document.
Json waterfall_json(const Timeline& timeline);

}  // namespace weir
