// Reads a source tree line by line and builds small ones for tests of the checks. Knows no rule.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weir::repo {

// Lines without their ends. Throws where the file cannot be read: a check that reads nothing must not pass.
std::vector<std::string> read_lines(const std::filesystem::path& file);

// Files below `folder` with one of the extensions (".h", ...), sorted. Empty where there is no such folder.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder,
                                               const std::vector<std::string>& extensions);

std::string_view trim(std::string_view text);
// Trimmed parts between separators; separators inside parentheses do not count.
std::vector<std::string> split(std::string_view text, char separator);

// A folder under the system's temporary one, removed with its contents at the end of the scope.
class ScratchTree {
 public:
  ScratchTree();
  ~ScratchTree();
  ScratchTree(const ScratchTree&) = delete;
  ScratchTree& operator=(const ScratchTree&) = delete;

  const std::filesystem::path& root() const { return root_; }
  void write(const std::string& path, std::string_view text) const;

 private:
  std::filesystem::path root_;
};

// The findings as one block of text, one per line, for assertion messages.
std::string joined(const std::vector<std::string>& findings);

}  // namespace weir::repo
