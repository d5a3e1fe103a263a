#include "cli/state_folder.h"

#include "cli/process.h"

namespace weir::cli {

std::filesystem::path calibration_file() {
  namespace fs = std::filesystem;
  fs::path folder;
  if (const auto state = environment_variable("XDG_STATE_HOME"); state && fs::path(*state).is_absolute())
    folder = fs::path(*state) / "weir";
  else if (const auto home = environment_variable("HOME"); home && fs::path(*home).is_absolute())
    folder = fs::path(*home) / ".local" / "state" / "weir";
  else
    return {};
  return folder / "calibration.json";
}

}  // namespace weir::cli
