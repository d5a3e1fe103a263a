// Where Weir keeps what it knows of this machine between runs.
#pragma once

#include <filesystem>

namespace weir::cli {

// The document of `weir calibrate`: $XDG_STATE_HOME/weir/calibration.json, or ~/.local/state/weir/calibration.json;
// empty where neither variable is set to an absolute path.
std::filesystem::path calibration_file();

}  // namespace weir::cli
