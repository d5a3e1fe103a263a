#include "cli/ready_files.h"

#include <algorithm>
#include <sstream>

#include "base/file.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

// Accepts "fork_join" and "config/fork_join", but no path out of the folder.
std::optional<fs::path> name_in(const std::string& typed, const char* folder) {
  const fs::path path = typed;
  if (path.is_absolute() || path.filename().empty() || typed.find("..") != std::string::npos) return std::nullopt;
  if (path.has_parent_path() && path.parent_path() != folder) return std::nullopt;
  return path.filename();
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// name: fork_join
bool is_workload(const fs::path& file) {
  std::istringstream text(start_of_file(file, 1 << 20));
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("name:")) return true;
  return false;
}

}  // namespace

std::optional<fs::path> ready_folder() {
  std::error_code failed;
  const fs::path binary = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  const fs::path folder = binary.parent_path();
  // build/release/weir is two folders below the checkout.
  for (const fs::path& candidate : {folder.parent_path() / "share" / "weir", folder.parent_path().parent_path()})
    if (is_there(candidate / "config" / "default.yaml")) return candidate;
  return std::nullopt;
}

std::string config_file(const std::string& typed) {
  if (typed.empty() || is_there(typed)) return typed;
  const auto name = name_in(typed, "config");
  const auto folder = ready_folder();
  if (!name || !folder) return typed;
  for (const fs::path& candidate : {*folder / "config" / *name, *folder / "config" / (name->string() + ".yaml")})
    if (is_there(candidate)) return candidate.string();
  return typed;
}

std::string package_folder(const std::string& typed) {
  if (typed.empty() || is_there(typed)) return typed;
  const auto folder = ready_folder();
  if (!folder) return typed;
  if (typed == "kernels" && is_there(*folder / typed)) return (*folder / typed).string();
  const auto name = name_in(typed, "kernels");
  return name && is_there(*folder / "kernels" / *name) ? (*folder / "kernels" / *name).string() : typed;
}

ReadyNames ready_names() {
  ReadyNames names;
  const auto folder = ready_folder();
  if (!folder) return names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(*folder / "config", ignored))
    if (entry.path().extension() == ".yaml")
      (is_workload(entry.path()) ? names.workloads : names.scenarios).push_back(entry.path().stem().string());
  for (const auto& entry : fs::directory_iterator(*folder / "kernels", ignored))
    if (entry.is_directory(ignored)) names.packages.push_back(entry.path().filename().string());
  for (auto* list : {&names.workloads, &names.scenarios, &names.packages}) std::sort(list->begin(), list->end());
  return names;
}

}  // namespace weir::cli
