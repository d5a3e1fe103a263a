// From paths to a report's page: walks folders, finds out what each file is, and gives it to the section for it. What
// cannot be used is refused with a reason, and the rest stays. Knows no flag and writes nothing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "report/page/measured.h"
#include "report/page/page.h"

namespace weir::page {

struct GatherOptions {
  std::filesystem::path passed_over;  // a file that is shown otherwise, wherever it lies; may be empty
  std::size_t max_spans = 2'000'000;  // of all traces together
  std::function<void(const std::string& file)> progress;  // may be empty; may throw to stop
};

// Adds what the files and folders hold, all but measurements: those are returned, for add_results() and
// add_baseline(), which have to see all of them.
std::vector<Measured> gather(Page& page, const std::vector<std::filesystem::path>& paths, const GatherOptions& options);

}  // namespace weir::page
