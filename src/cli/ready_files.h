// Files that come with the program, found from where it lies: share/weir beside bin where it is installed, else the
// checkout that its build folder is in. What the user names as a path always comes first.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weir::cli {

// The folder that has config/ and kernels/; nothing where the binary was copied alone.
std::optional<std::filesystem::path> ready_folder();

// A YAML file as typed, where there is one; else the ready one of that name: "fork_join", "fork_join.yaml" or
// "config/fork_join.yaml". What is neither is returned as typed, for its reader to complain of.
std::string config_file(const std::string& typed);
// The same of kernel packages: "softmax", "kernels/softmax", and "kernels" for all of them.
std::string package_folder(const std::string& typed);

// Names for people to choose from, in alphabetical order. Workload files have a name in them, scenarios do not.
struct ReadyNames {
  std::vector<std::string> workloads, scenarios, packages;
};
ReadyNames ready_names();

}  // namespace weir::cli
