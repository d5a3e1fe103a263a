// Files that come with the program, found relative to the binary: share/weir next to bin where it is installed, else
// the checkout that contains its build folder. A path that the user names always comes first.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weir::cli {

// The folder that has config/ and kernels/; empty where only the binary was copied.
std::optional<std::filesystem::path> ready_folder();

// A YAML file as typed, if it exists; else the one of that name that comes with the program: "fork_join",
// "fork_join.yaml" or "config/fork_join.yaml". Anything else is returned as typed, so that its reader reports the
// error.
std::string config_file(const std::string& typed);
// The same for kernel packages: "softmax", "kernels/softmax", and "kernels" for all of them.
std::string package_folder(const std::string& typed);

// Names to choose from, in alphabetical order. Workload files contain a name, scenarios do not.
struct ReadyNames {
  std::vector<std::string> workloads, scenarios, packages;
};
ReadyNames ready_names();

}  // namespace weir::cli
