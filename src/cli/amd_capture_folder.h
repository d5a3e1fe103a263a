// The folder that a capture writes: for its owner alone, and every file in it new. Root may write here, so nothing is
// opened through a link, wherever the folder is moved meanwhile. Knows no part of a capture.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/descriptor.h"

namespace weir::cli {

class CaptureFolder {
 public:
  // Makes it, mode 0700. Rejects a link, another user's folder, one that others may write to, and one that is not
  // empty; with `is_forced` an earlier capture in it is removed, and nothing else.
  CaptureFolder(const std::filesystem::path& path, bool is_forced);

  // As the kernel names it now, without links.
  const std::filesystem::path& path() const { return path_; }
  // For another program to write by, while we live. Where somebody else may rename the folder and put another in its
  // place it leads through our descriptor, which stays with the folder; else it is the path.
  std::filesystem::path steady_path() const;

  // Writes a new file below it. Returns what went wrong: "snapshots/before/hqds: No space left on device"; empty:
  // nothing.
  std::string write(const std::string& name, std::string_view text);
  // Replaces a file by one rename; a link there is replaced, never followed.
  std::string replace(const std::string& name, std::string_view text);

  struct Copied {
    std::string problem;  // empty: none
    bool is_made = false, is_cut = false;
    std::uint64_t bytes = 0;
  };
  // Copies what `from` has, up to `most` bytes, or until `is_stopped`.
  Copied copy(int from, const std::string& name, std::uint64_t most, const std::function<bool()>& is_stopped = {});

  // Plain files directly in it whose names begin with `prefix`, sorted.
  std::vector<std::string> files(const std::string& prefix) const;
  // Of a plain file, or of all below a folder; 0 where there is none.
  std::uint64_t bytes(const std::string& name) const;

 private:
  // A new file, its folders made on the way; -1 and errno where that is not possible.
  int create(const std::string& name);
  void remove_capture();

  std::filesystem::path path_;
  Descriptor folder_;
};

}  // namespace weir::cli
