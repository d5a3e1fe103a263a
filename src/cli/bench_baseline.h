// The summary that `weir bench --compare-to` names: a file, a folder of reports, or what a git ref has of it. Asks git
// as a limited child process without a shell. Compares nothing.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"

namespace weir::cli {

// `what`: an existing file; an existing folder with summary.json; else a branch, tag or commit, of which
// OUTPUT_DIR/summary.json is read as it was committed there. Rejects each way in which there is none, by its own words.
Json load_baseline(const std::string& what, const std::filesystem::path& output_dir);

}  // namespace weir::cli
