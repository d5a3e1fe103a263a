// The files below paths that a user named, in order. Opens none of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weir::page {

struct FoundFile {
  std::filesystem::path path;
  bool is_named = false;  // by the user, rather than found in a folder
};

struct Walk {
  std::vector<FoundFile> files;
  struct Left {
    std::string path, reason;
  };
  std::vector<Left> left;  // what was not followed or is not there, and why
};

// Folders are walked to a bounded depth and count; links are not followed out of them. A file that is reached twice is
// found once.
Walk walk_paths(const std::vector<std::filesystem::path>& paths);

}  // namespace weir::page
