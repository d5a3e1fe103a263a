// The summary that `weir bench --compare-to` names: a file, a folder of reports, or a version in git. Runs git as a
// limited child process without a shell. Compares nothing.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"

namespace weir::bench {

// `what`: an existing file; an existing folder with summary.json; else a branch, tag or commit, from which
// OUTPUT_DIR/summary.json is read as committed. Rejects each case of a missing baseline with its own message.
Json load_baseline(const std::string& what, const std::filesystem::path& output_dir);

}  // namespace weir::bench
