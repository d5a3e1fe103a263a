// From paths to a report's page: walks folders, detects the type of each file, and passes it to the matching section.
// Unusable files are refused with a reason, and the rest is kept. Knows no flag and writes nothing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/page/measured.h"
#include "report/page/page.h"
#include "trace/intervals.h"

namespace weir::page {

struct GatherOptions {
  std::filesystem::path passed_over;     // a file that is shown in another way, wherever it is; may be empty
  std::filesystem::path baseline;        // compared with traces if it is one, or a folder of them; may be empty
  std::size_t max_spans = 2'000'000;     // all traces together
  std::vector<std::string> collectives;  // patterns for kernels that communicate (trace/kinds.h)
  std::optional<TimeInterval> window;    // of traces, as in AnalyzeOptions
  std::function<void(const std::string& file)> progress;  // may be empty; may throw to stop
};

struct Gathered {
  std::vector<Measured> measured;
  bool is_baseline_trace = false;  // so add_baseline() has nothing to do
};

// Adds the contents of the files and folders, except measurements. Those are returned for add_results() and
// add_baseline(), which need all of them at once. Traces of different ranks are one job.
Gathered gather(Page& page, const std::vector<std::filesystem::path>& paths, const GatherOptions& options);

}  // namespace weir::page
