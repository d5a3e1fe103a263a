#include "device/gpu/cuda_toolkit.h"

#include <algorithm>
#include <string_view>

namespace weir {
namespace {

// Entries of a folder that begin with `prefix`, sorted; empty if it cannot be read.
std::vector<std::filesystem::path> below(const std::filesystem::path& folder, std::string_view prefix) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// /usr/local/cuda, /usr/local/cuda-13.0
std::vector<std::filesystem::path> toolkits() { return below("/usr/local", "cuda"); }

}  // namespace

std::vector<std::string> toolkit_places(std::span<const std::string> names) {
  std::vector<std::string> places(names.begin(), names.end());
  const auto add = [&](const std::filesystem::path& folder) {
    for (const std::string& name : names) places.push_back((folder / name).string());
  };
  for (const std::filesystem::path& toolkit : toolkits()) {
    // /usr/local/cuda-13.0/lib64, /usr/local/cuda/targets/sbsa-linux/lib
    for (const std::filesystem::path& folder : below(toolkit, "lib")) add(folder);
    for (const std::filesystem::path& target : below(toolkit / "targets", "")) add(target / "lib");
  }
  return places;
}

std::filesystem::path toolkit_headers() {
  std::error_code error;
  for (const std::filesystem::path& toolkit : toolkits())
    if (std::filesystem::is_regular_file(toolkit / "include" / "cuda_fp16.h", error)) return toolkit / "include";
  return {};
}

}  // namespace weir
