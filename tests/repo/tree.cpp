#include "repo/tree.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace weir::repo {

namespace fs = std::filesystem;

std::vector<std::string> read_lines(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<fs::path> files_below(const fs::path& folder, const std::vector<std::string>& extensions) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && std::ranges::count(extensions, entry.path().extension().string()) > 0) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (const char letter : text) {
    if (letter == '(') ++depth;
    if (letter == ')') --depth;
    if (letter == separator && depth == 0) {
      parts.emplace_back(trim(part));
      part.clear();
    } else {
      part += letter;
    }
  }
  parts.emplace_back(trim(part));
  return parts;
}

ScratchTree::ScratchTree() {
  std::string name = (fs::temp_directory_path() / "weir-tree-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
  root_ = name;
}

ScratchTree::~ScratchTree() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void ScratchTree::write(const std::string& path, std::string_view text) const {
  const fs::path file = root_ / path;
  fs::create_directories(file.parent_path());
  std::ofstream stream(file);
  stream << text;
  if (!stream) throw std::runtime_error("cannot write " + file.string());
}

std::string joined(const std::vector<std::string>& findings) {
  std::string text;
  for (const auto& finding : findings) text += finding + "\n";
  return text;
}

}  // namespace weir::repo
